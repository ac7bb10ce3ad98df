"""The words by which a clause shows its part, in the bundled languages.

As in `_words`, each constant is the inside of a regular expression without groups that capture,
matched without regard to case. Those down to `MAIN` stand at the beginning of their clause.
"""

from __future__ import annotations

EXPLAINS = (
    r"(?:(?:\w+ ){0,3}(?:before|after) (?:the|it|he|she|they|this|that)|when|bevor|nachdem"
    r"|avant (?:que"
    r"|de)|après que|antes de(?: que)?|después de(?: que)?|prima (?:che|di)|dopo che|voordat|nadat"
    r"|to (?!sum|conclude|summ|be (?:clear|sure|precise|exact|honest|fair|more)|recap|put|answer"
    r"|me\b)"
    r"[a-z]{3,} (?:the|a|an|your|this|it|my)"
    r"|because|since|given (?:that|the|how)|considering|seeing (?:that|as)|inasmuch|as (?:it|the"
    r"|he|she|they|there|we|you|this|that|both|all|no|none|neither|nothing|only|its|his|her|their)"
    r"|weil|denn|da (?:der|die|das|es|er|sie|ich|wir|ein|eine|kein|nur|dort|hier|in|sich|man|nach)"
    r"|zumal|puisqu|parce qu|car|étant donné|vu qu|comme (?:il|elle|le|la|les)"
    r"|porque|ya que|pues|puesto que|dado que|debido a|perché|poiché|siccome|dato che|visto che"
    r"|omdat|want (?:het|de|er|ik|je|dit|dat|hij|ze|zij|we|geen|in|op|alle|deze|die)|aangezien"
    r"|doordat|pois|já que|uma vez que|visto que)(?!\w)"
)
CONCEDES = (
    r"(?:although|though|even though|while|whereas|despite|in spite of|notwithstanding|albeit"
    r"|even if|regardless|no matter|apart from|aside from|much as"
    r"|obwohl|auch wenn|wenngleich|trotz|während|wohingegen|abgesehen von|bien qu|même si|malgré"
    r"|alors qu|tandis qu|quoiqu|hormis|aunque|a pesar de|mientras que|pese a|si bien|sebbene"
    r"|anche se|nonostante|mentre|benché|hoewel|ook al|ondanks|terwijl|al (?:is|was|zijn)"
    r"|embora|ainda que|apesar d|enquanto|mesmo que|mesmo se)(?!\w)"
)
RELATES = (
    r"(?:which(?! (?:\w+ ){0,4}(?:makes|leaves|means|gives|yields|is why|points|brings|puts"
    r"|settles|would"
    r" make|leads)\b)"
    r"|who|whom|whose|where|of (?:which|whom)|van wie|waarvan|di cui|de (?:los|las) cuales|davon"
    r"|dos quais|das quais|in which|with which|dont|lequel|laquelle|cuy[ao]s?"
    r"|welche[rsnm]?|wobei|wodurch|dessen|deren)(?!\w)"
)
IDLE_IF = (
    r" (?:you(?:'d| would) (?:like|rather|prefer)|you (?:ask|need|want|insist|really|would like"
    r"|have to|(?:prefer|like"
    r"|wish)(?=\s*(?:[).,;!]|$))|(?:\w+ )?(?:look|read|check|count"
    r"|consider|compare|take|think|go|know|see))|(?:we|one) (?:look|read|check|count|consider"
    r"|compare|take|go)s?|i (?:had|have|were|was|ever|must|think|consider|go by|may|am|remember"
    r"|recall|understand|read"
    r"|look|count)|i'm (?:right|not)|pressed|forced|anything|memory|any|only|it were me"
    r"|nothing else|in doubt)\b"
)
"""What follows an "if" that makes no condition: if you ask me, if I had to choose."""

SUPPOSES = (
    rf"(?:if(?!{IDLE_IF})|unless|in case"
    r"|whenever|as long as|provided(?: that)?(?! in)|providing|assuming|suppose|supposing"
    r"|should (?:the|it|you|they|he|she|this|there)|were (?:the|it|this)|had (?:the|it|this)"
    r"|otherwise|wenn(?! ich mich| man mich)|falls (?:der|die|das|es|sie|er|ich|man|du|ihr|wir|ein"
    r"|kein|nicht|doch|dem|den)|sofern|sonst|solange|vorausgesetzt"
    r"|si(?! tratta| può| deve| je (?:ne )?me| mal no| no me)|sinon|à condition|à moins|pourvu"
    r"|salvo que|a menos que|siempre que|en caso|de lo contrario"
    r"|se (?:il|lo|i|gli|le|l'|non|fosse|o|a|os|as|não|for|houver|è|é)|qualora|altrimenti"
    r"|a meno|purché|als (?:de|het|je|u|er|men|dat|we|ze|hij)|indien|tenzij|mits|anders|caso (?:o"
    r"|a|os|as|não|seja|haja|você)"
    r"|a menos|senão|desde que)(?!\w)"
)
LATER = (
    r"(?:once|until|till|after (?:the|that|this|it)|as soon as|sobald|bis|dès que|jusqu|una vez"
    r" que|hasta que|una volta|finché|zodra|totdat|assim que|até que)(?!\w)"
)
WONDERS = (
    r"(?:whether|which (?:of|one)|how (?:many|much)|ob|welche[rs]? (?:"
    r"von|der)|si c'est|lequel|cuál|si es|quale|of het|welke|se é|qual)(?!\w)"
)
MAIN = (
    r"(?:on balance|on the whole|all things considered|taken together|in summary|to sum up"
    r"|to summari[sz]e"
    r"|summing up|in sum|ultimately|at the end of the day|unterm strich|im großen und ganzen"
    r"|alles in"
    r" allem|dans l'ensemble|en somme|tout compte fait|au final|en general|en definitiva|en resumen"
    r"|nel complesso|tutto sommato|al met al|no geral|no fim das contas|em suma"
    r"|so|thus|hence|therefore|consequently|accordingly|it(?:'s| is)|that(?:'s| is)|this is"
    r"|i(?:'d|'ll| would| will| choose| pick| go| am| think)|we|my|the (?:answer|correct|right)"
    r"|daher|deshalb|somit|folglich|ich|das ist|donc|ainsi|c'est|je|por (?:lo )?tanto"
    r"|así que|entonces|quindi|dunque|perciò|pertanto|dus|daarom|ik|portanto|logo|então)(?!\w)"
)

_THIRD = (
    r"(?:key|book|teacher|colleague|friend|student|guidelines?|policy|user|customer|client|author"
    r"|writer|reviewer|review|text|ticket|message|mail|e-mail|email"
    r"|passage|article|speaker|comment|people|person|many|some|everyone|somebody|someone|others"
    r"|you|he|she|they|guest|caller|sender|question|instructions?|subject line|title|heading"
    r"|description|sentence|note|draft|document|page|kundin|kunde|text|autorin|autor|nutzer"
    r"|man|cliente|client|texte|auteur|texto|autor|testo|autore|tekst|auteur|klant|avaliação)"
)
_SAYS = (
    r"(?:says?|said|answers?|answered|replied|replies|responded|guess(?:es|ed)?|mentions?"
    r"|mentioned|asks?|asked|writes?|wrote|claims?|claimed|calls? (?:it"
    r"|itself|himself|herself|the|this|their)|called|talks?|talked|speaks?|spoke|refers?|referred"
    r"|complains? about|complained about|praises?|quotes?|brings up|insists?|suggests?|thinks?"
    r"|believes?|wants? (?:me|us)|expects?|assumes?|uses? the word|erwähnt|nennt|schreibt|sagt"
    r"|spricht|fragt|meint|mentionne|parle|dit|écrit|demande|évoque|menciona|dice|habla|escribe"
    r"|pregunta|parla|scrive|chiede|menziona|noemt|zegt|schrijft|vraagt|fala|diz|escreve"
    r"|pergunta)"
)
QUOTES = (
    rf"(?:\b{_THIRD}(?: \w+){{0,3}}? (?:\w+ly |also |would |might |may |will |first |only |just )?"
    rf"(?<!\bthe )(?<!\bthis ){_SAYS}\b(?! (?:is|was|are) )|という(?:語|言葉|単語))"
)
"""Words of a clause that reports what somebody else says."""

RULES = (
    r"(?:\b(?:usually|typically|generally|normally|often|commonly|always|in general|as a rule"
    r"|tends? to|stands? for|refers? to|is (?:used|reserved|meant|intended|defined) (?:for|when"
    r"|if|as|to|only)|should (?:not |only |never )?be (?:used|reserved|chosen when|applied)"
    r"|applies (?:when|if|to|only)|denotes?|is (?:a|the) (?:label|category|class|term|word) (?:for"
    r"|that|which|used)|by definition|normalerweise|gewöhnlich|meistens|in der regel|"
    r"généralement|normalement|d'habitude|suele[n]?|normalmente|generalmente|por lo general"
    r"|di solito|di norma|meestal|gewoonlijk|doorgaans|geralmente|em geral)\b"
    r"|^[\W_]*(?:the )?(?:tickets|requests|reviews|comments|messages|cases|texts|mails|e-mails"
    r"|questions|reports|issues|labels|items|examples|statements|sentences|complaints|customers"
    r"|users|words)\b(?! (?:in (?:this|the)|here|above|below|given|suggest|point|show|indicate))"
    r"|^[\W_]*(?:dear \w+|let's|let us|allons|lass(?:t|en)? uns|vamos a|laten we)\b|通常|一般に)"
)
"""Words of a clause that says what holds in general, or greets."""

BEFORE_NOW = (
    r"(?:\b(?:at first|initially|originally|i (?:first |had |also )?thought|i was (?:tempted"
    r"|torn|going to|about to|inclined)|i(?:'d| would)? (?:have|first) (?:said|guessed|picked"
    r"|chosen|wanted|considered)|my (?:first|initial|gut|original|earlier|previous)|first"
    r" (?:guess|thought|instinct|impression|glance|sight|reading|impulse)|tempt(?:ed|ing)"
    r"|(?:most |many |some )people|many (?:think|believe|would|assume)|it (?:is|would be) (?:easy"
    r"|tempting|natural) to|the obvious (?:answer|choice|candidate|guess)|the (?:draft|previous"
    r"|earlier|old) |used to be|(?:starts?|started|begins?|began) (?:off|out|as|with)|one (?:might"
    r"|could|may) (?:think|say|expect|argue)|you (?:might"
    r"|could|may) (?:think|say|expect|argue|be tempted)|i considered|"
    r"zuerst|zunächst|anfangs|ursprünglich|ich dachte|auf den ersten blick|man könnte meinen"
    r"|d'abord|au départ|à première vue|je pensais|j'ai pensé|on pourrait (?:croire|penser)"
    r"|al principio|a primera vista|pensé|pensaba|iba a|en un principio|podría parecer"
    r"|all'inizio|a prima vista|pensavo|inizialmente|si potrebbe pensare|o candidato óbvio"
    r"|eerst|op het eerste gezicht|ik dacht|aanvankelijk|à primeira vista|pensei|a princípio"
    r"|inicialmente|ia (?:dizer|pôr|colocar))\b|最初は|一見)"
)
"""Words of a clause that puts an answer into the past."""

UNSETTLED = (
    r"(?:\b(?:would(?:n't)? have(?! to)|could have|might have|(?:hard|difficult|impossible|easy"
    r"|tricky"
    r"|not possible|need|needs|order|trying|try|tries|want|wants|wanted|asked|asking|failed|fails"
    r"|supposed|meant|ready|happy|glad|how|whether|enough|too \w+) (?:for \w+ )?to (?:be|say|call"
    r"|tell|know|decide|choose|label|classify|pick|see|judge|route|assign|change|find|give|make)"
    r"|instead of|rather than (?:being|having|giving)|for (?:instance|example)|e\.g\.|such as"
    r"|for it to be|to be (?:sure|certain|able)|imagine|hypothetical)\b|たとえば|例えば)"
)
"""Words of a clause whose content is not said to be so."""

CARRIER = (
    r"(?:issues?|problem|case|ticket|request|question|matter|topic|team|queue|desk|department|unit"
    r"|category|label|class|tag|option|answer|priority|severity|urgency|level|note|tone|mood"
    r"|sentiment|impression|feeling|attitude|stance|view|opinion|review|comment|statement|message"
    r"|mail|e-mail|email|letter|text|post|tweet|reply|response|customer|client|author|writer"
    r"|reviewer|person|user|speaker|side|end|direction|trend|one|type|kind|style|example|inquiry"
    r"|enquiry|complaint|report|verdict|rating|experience|word|language|code|change|material"
    r"|kundin|kunde|person|frau|mann|cliente|persona|personne|pessoa|klant|bereich|abteilung"
    r"|anfrage|fall|problème|problema|cas|caso|geval|vraag|intent|emotion|group|period|genre|day"
    r"|weather|forecast|star|point|tag)s?"
)
"""Nouns that carry a label: with one of them, a label before it is still the label."""

"""The words that say how an answer is meant, in the bundled languages.

Languages: en, de, es, fr (fr-CA), it, ja, nl, pt-BR. Each constant is the inside of a regular
expression without groups that capture; matched without regard to case. Japanese has no spaces, so
its words stand outside the word boundaries.
"""

from __future__ import annotations

_ANSWER_NOUN = (
    r"(?:answer|ans\.?|response|solution|conclusion|verdict|decision|result|classification|label"
    r"|category"
    r"|choice|option|pick|antwort|lösung|ergebnis|fazit|entscheidung|einordnung|kategorie|wahl"
    r"|respuesta|solución|resultado|conclusión|decisión|etiqueta|categoría|opción|elección"
    r"|réponse|reponse|résultat|conclusion|décision|étiquette|catégorie|choix"
    r"|risposta|soluzione|risultato|conclusione|decisione|etichetta|categoria|scelta"
    r"|antwoord|oplossing|resultaat|conclusie|besluit|keuze|categorie"
    r"|resposta|solução|resultado|conclusão|decisão|etiqueta|classificação|escolha|opção|class"
    r"|output|json|rating|score|grade|status|queue|sentiment|intent|topic|tone|stance)"
)
_FINAL_WORD = (
    r"(?:final|correct|right|best|overall|endgültige?|richtige?|korrekte?|correcta|final|bonne"
    r"|correcte|finale|corretta|definitieve|juiste|correta|my|the|so|thus|hence|therefore|also"
    r"|die|la|le|il|de|het|a|o|meine?|ma|mi|mijn|minha)"
)

FINAL = (
    rf"(?:{_FINAL_WORD}[ \t,*_]+){{0,4}}{_ANSWER_NOUN}(?:[ \t]+(?:is|ist|est|es|è|é)\b)?[ \t*_]*"
    r"(?:[:：=]|→|->|=>|⇒)|(?:final|total|overall|tl;?dr|gesamt|total)[ \t*_]*[:：=]"
    r"|(?:最終)?(?:答え|回答|解答|結論|分類|正解)[ \t*_]*(?:[:：=]|は)|####"
)
"""How a line with the final answer begins."""

QUESTION_LINE = (
    r"(?:next\s+)?(?:question|q|human|user|frage|pregunta|domanda|vraag|pergunta|問題|質問)"
    r"(?:\s*\d+)?"
)
"""How a line begins in which a model asks itself a further question."""

CONCLUSION = (
    r"(?:(?<=, )also(?=\s+[\d€$x])|^[\s\"*_]*also(?=\s*(?:x?$|[\d$€\"„]|B|C|D))|^[\s\"*_]*(?:that"
    r"|this|it)(?: would|'d) be\b|^[\s\"*_]*(?:going|sticking|staying) (?:with|for)\b|\b(?:so|thus"
    r"|hence|therefore|consequently"
    r"|overall|in the end|all in all|in short|finally"
    r"|which makes|that makes|this makes|makes (?:it|this|that)|leaves(?: (?:me|us))?(?: with)?"
    r"|i(?:'d|'ll| would| will| shall| must| have to| can only| do)?(?: \w+ly| thus| still| then"
    r"| now| just| rather| have to)* (?:choose|pick|select|tick|say|go (?:with|for)|vote for"
    r"|opt for|settle (?:on|for)|label|tag|call|classify|lean (?:towards?|to)|file|rate|route|put"
    r"|guess|estimate|reckon|answer|take|read|mark|count|assign|send|set|treat|stick with|bet on"
    r"|conclude"
    r"|decide (?:on|for)|change (?:it|this|that|my \w+) (?:to|into)|switch to|make (?:it|that))"
    r"|i(?:'m| am)(?: \w+ly| therefore| thus| still| now)? (?:(?:going|sticking|staying)"
    r" (?:with|for)|picking|choosing|settling on)|let me (?:change|correct|revise) (?:it|this"
    r"|that|my \w+) to"
    r"|(?:change|revise) (?:my|the) (?:answer|choice|verdict) to|let's (?:say|go with|make it)"
    r"|my (?:answer|choice|pick|guess|vote|verdict|bet|money is on)"
    r"|(?:answer|choice|option|label|category|class|classification|verdict|pick) (?:is|would be"
    r"|should be|ha(?:s|ve) to be|must be)"
    r"|in other words|that is to say|i\.e\.|namely|nämlich|à savoir|c'est-à-dire|es decir|o sea"
    r"|cioè|ossia|namelijk|oftewel|ou seja|isto é"
    r"|has to be|must be|should be|the one you want|you should pick|it is|it's|it was"
    r"|it must have been|it will be"
    r"|we (?:need|choose|pick|take|get|want|are left with)"
    r"|(?:ist|sind|es|wir|bleibt|lautet|folgt|gilt|hat|haben|er|sie|man|kostet|macht|ergibt|das"
    r"|war) also"
    r"|also (?:ist|sind|bleibt|hat|kostet|gehört|gilt|lautet|würde|die|der|das|ich|wir|es|rund"
    r"|etwa)"
    r"|daher|deshalb|somit|folglich|demnach|schließlich|insgesamt|gemeint ist|bleibt"
    r"|sondern|richtig ist|ich (?:wähle|nehme|entscheide mich für|bleibe bei|plädiere für"
    r"|setze auf|tippe auf|würde sagen|sage|halte|ordne)"
    r"|die (?:richtige )?antwort (?:ist|lautet)"
    r"|donc|ainsi|par conséquent|finalement|au final|c'est|il s'agit (?:donc )?d(?:e|'un|'une)"
    r"|je (?:choisis|choisirais|parie(?:rais)? sur|maintiens|vote(?:rais)? pour|prends|prendrais"
    r"|dirais|penche(?:rais)? pour|retiens|retiendrais|classe(?:rais)?|mets|mettrais)"
    r"|j'opte(?:rais)? pour|"
    r"soit|la (?:bonne )?réponse est"
    r"|por (?:lo )?tanto|así que|entonces|en conclusión|luego|elijo|elegiría|escojo|escogería"
    r"|me decanto por|apuesto por|apostaría por|clasificaría|optaría por"
    r"|me quedo con|me quedaría con|opto por|diría(?: que)?|me inclino por|yo digo|la respuesta "
    r"(?:correcta "
    r")?es|se trata de"
    r"|quindi|dunque|perciò|pertanto|in conclusione|scelgo|sceglierei|opterei per|opto per|direi"
    r"|mi orienterei su|resta"
    r"|rimane|la risposta (?:corretta |giusta )?è"
    r"|si tratta di"
    r"|dus|daarom|kortom|ik (?:kies|ga|houd het|hou het|zou)(?: voor| op)?|blijft"
    r"|het (?:juiste )?antwoord is|het gaat om"
    r"|portanto|logo|assim|então|por isso|escolho|escolheria|optaria por|ficaria com|fico com|eu "
    r"diria|diria|opto por|resta"
    r"|a resposta (?:correta |certa )?é|trata-se de)\b"
    r"|したがって|よって|つまり|だから|ゆえに|答えは|正解は|結論として|=>|⇒|→|->|∴|####)"
)
"""Words before an answer that say it is the one."""

COMMIT = (
    r"(?:\b(?:(?:you|we|one)(?:'d| would| should| can| need to| have to| must)? (?:use|choose|pick"
    r"|take|type|run|select)|a (?:case|matter|job|task) (?:of|for)|caso d[ei]|is|are|was|be|were"
    r"|'s|as|about"
    r"|deals with|shows?|means?|expresses|conveys|indicates|reflects|suggests|comes to"
    r"|(?:functions?|acts?|serves?|works?|counts?|qualif(?:y|ies)) as|stance|results? in"
    r"|ist (?:der|die|das) [^\W\d]+|status "
    r"(?:is|to)|deserves|warrants|merits"
    r"|(?:is|wants?|would like|wishes|wished|needs?|asks?|asked|decided|wanted|möchte|veut|quiere"
    r"|vuole"
    r"|wil|quer)(?: me| us)? to|möchte|falls? (?:under|into|in|within)|(?:is|was|be|are"
    r"|been) (?:rated|labell?ed|classified|tagged|marked|called|termed|ranked)"
    r"|(?:belongs|goes|go|sent|send|assign(?:ed)?|routed?|route|set|moved?|forward(?:ed)?"
    r"|filed?|classified|categori[sz]ed|labell?ed|tagged|marked|rated|points?|leans?|lean"
    r"|handled|dealt|looked after)(?: \w+){0,3}? (?:in|to|into|under|as|by|with|towards?|for)"
    r"|this one is for|this is for|i lean"
    r"|ist|sind|als|war|gehört (?:in|zu)(?:r|m)?|auf|bei|est|sont|comme|concerne|relève d[eu]"
    r"|es|son|como|corresponde a|va a|è|sono|come|riguarda|is|zijn|hoort bij|moet op|é|são|ser"
    r"|como"
    r"|(?:is|are|was|written) in|geht es um|handelt (?:es )?sich um|il s'agit d[e']|se trata de"
    r"|si tratta di|(?:het gaat|gaat het) om|trata-se d[eo]|makes? (?:this|it|the|that)(?: \w+)?"
    r"|(?:call|rate|label|mark|tag|judge)(?:ed)? (?:this|it|that)(?: one)?(?: as)?|matches"
    r"|corresponds to|needs? an?|should|ought to"
    r"|die queue|la file|la cola|la coda|de wachtrij|a fila)|[:：=は])"
)
"""Words right before an answer that make a plain statement of it."""

NEGATION = (
    r"(?:\b(?:eliminating|ruling out|excluding|discarding|cross(?:ed)? out|strike|dismiss(?:ed)?"
    r"|drop"
    r"|schließe|streiche|écart\w+|élimin\w+|descart\w+|elimin[oa]\w*|esclud\w+|scart\w+"
    r"|exclu[oi]\w*"
    r"|nobody|no one|niemand|nadie|ninguém|not|no|never|neither|nor|without|isn't|aren't|wasn't"
    r"|doesn't|don't|didn't|can't"
    r"|cannot|won't"
    r"|couldn't|wouldn't|hardly|nothing|none|rules? out|ruled out|excludes?|eliminates?|discard"
    r"|reject|rather than|(?:wrong|incorrect|unfair|a mistake|misleading) to"
    r"|instead of|as opposed to|unlike|apart from|other than|except|anything but|far from"
    r"|anstatt|anstelle von|au lieu de|en vez de|ao invés de"
    r"|nicht|kein|keine|keinen|keinem|keiner|weder|noch|nie|ohne|statt"
    r"|pas|ni|aucun|aucune|jamais|sans|plutôt que|non"
    r"|no|nunca|tampoco|sin|ningún|ninguna|en lugar de"
    r"|non|né|nessuno|nessuna|mai|senza|invece di"
    r"|niet|geen|noch|nooit|zonder|in plaats van"
    r"|não|nem|nunca|nenhum|nenhuma|sem|em vez de)\b|n't\b|\bn'|\bne\s)"
)

NEGATION_AFTER = (
    r"['\"”»)\]*_]*\s*(?:->|→|:|=|[–—-]) ?(?:no|false|wrong|incorrect|not\b|nein|falsch|non|faux"
    r"|fout)\b"
    r"|['\"”»)\]]*\s*(?:(?:is|was|are|were|also|queue|itself|label|one)\s+){0,3}"
    r"(?:not\b|out\b|no\b|false\b|untrue|wrong|incorrect|ruled out|excluded|impossible"
    r"|can be (?:ruled out"
    r"|excluded|discarded)"
    r"|does(?:n't| not)|do(?:n't| not)|isn't|is not|wasn't|cannot|can't|won't|doesn't|is "
    r"reserved|has nothing"
    r"|contradicts|falls out|drops out|remains? possible"
    r"|is het niet|ist es nicht|spricht (?:hier )?(?:nichts|wenig)"
    r"|(?:ist |sind )?(?:nicht|falsch|ausgeschlossen)|scheidet|scheiden|passt nicht|fällt weg"
    r"|n'est|ne\s|no (?:es|encaja|puede)|non è|non\s|is niet|valt af|não|est exclu|queda "
    r"descartad|è esclus)"
    r"|\s*(?:では(?:なく|ない|ありません)|ではな|じゃな|でなく|とは言え|は違|は不正解)"
)

ADVERSATIVE = (
    r"\b(?:but|however|yet|sondern|aber|mais|sino|pero|ma|bensì|maar|mas|doch|jedoch|though)\b"
)

SOFT = (
    r"(?:\b(?:mixed with|tinged with|with (?:a|some) (?:little|bit|touch|hint|trace|dash|share)"
    r"|(?:bit|touch|hint|trace|dash) of|at least|at most|or higher|or lower|mindestens|höchstens"
    r"|al menos|au moins|secondary"
    r"|looks?|looked|seems?|seemed|sounds?|tempted|tempting|at first|first (?:thought"
    r"|wanted|said|sight|glance)|i thought|thought|could|might|may"
    r"|would be|would have|maybe|perhaps|possibly|either|whether|unless|consider|considered"
    r"|versus|vs|beyond|past the"
    r"|partly|somewhat|suspects?|wonder|between|people often|fall for|wanted to|runner-up"
    r"|second|close to|similar to|next to"
    r"|check|double-check|verify|by comparison|initially|originally|instinct|although|though"
    r"|even if|despite|while|draft|earlier|previous|previously|used to"
    r"|vielleicht|womöglich|eventuell|könnte|zuerst|zunächst|zwar|obwohl|entweder|ob|zwischen"
    r"|scheint|wirkt|dachte"
    r"|peut-être|pourrait|d'abord|entre|soit|semble|bien que|malgré|si"
    r"|quizás?|tal vez|podría|primero|parece|aunque|entre"
    r"|forse|potrebbe|prima|sembra|anche se|tra|fra|malgrado|sebbene"
    r"|misschien|wellicht|eerst|lijkt|hoewel|tussen|zou"
    r"|talvez|poderia|primeiro|parece|embora|apesar)\b|かもしれ|最初は|もし)"
)
"""Words before a mention that take it for less than an answer."""

EARLIER = (
    r"\b(?:at first|first|initially|originally|instinct|i thought|thought|tempted|tempting"
    r"|wanted to|although|though|despite|draft|earlier|previous|previously|check|double-check"
    r"|verify"
    r"|zuerst|zunächst|dachte|obwohl|zwar|d'abord|bien que|malgré|primero|aunque|prima|sebbene"
    r"|malgrado|eerst|hoewel|primeiro|embora|apesar)\b|最初は"
)
"""Words that put an answer into the past, or aside, however firmly it is given."""

LEAN = (
    r"\b(?:i (?:suspect|guess|suppose|imagine|believe|think|reckon|assume|expect)|looks?|seems?"
    r"|sounds?|might|may|could|would be|perhaps|maybe|possibly|appears?"
    r"|scheint|wirkt|klingt|könnte|vielleicht|semble|pourrait|peut-être"
    r"|parece|podría|quizás?|sembra|potrebbe|forse|lijkt|misschien|poderia|talvez)\b|かもしれ"
)
"""Words that lean to an answer: one that nothing else is weighed against is read."""

SOFT_AFTER = (
    r"['\"”»)\]]*\s*(?:\?|(?:would|could|might|may|is tempting|seems?|is (?:just as|also"
    r"|nearly) |was my first|threshold|at this point"
    r"|klingt|wäre|könnte|serait|sería|sarebbe|zou|seria)\b)|\s*(?:のように|に見え|も|か)"
)

OPEN = (
    r"(?:\bdepend(?:s|ing|e|er|ent)?\b|can't decide|cannot decide|can't settle|can't say which"
    r"|could be either|either of|either way"
    r"|hard to say which|(?:say|said|tell|know|specify|specified|sure|clear) which|take your pick"
    r"|both (?:of them|fit|apply|would|readings|answers|interpretations|options|labels)"
    r"|both are (?:possible|plausible|equally|just as)|(?:just as|equally) (?:plausible|likely"
    r"|possible|good|well)|(?:no|n't [^.!?]{0,30}\ba|not a) single"
    r" (?:right|correct) answer|are (?:two|several) (?:correct|right) answers"
    r"|(?:n't|not) [^.!?]{0,40}\benough to (?:settle|decide)|going "
    r"round in circles|not (?:entirely )?clear which|one of the two"
    r"|two candidates|toss-?up|i(?:'m| am) torn|hängt davon ab|kommt darauf an|je nach|ça "
    r"dépend|dépend|je ne peux pas trancher|depende|según|dipende|hangt (?:er)?van? af"
    r"|ik twijfel|beides?(?: (?:sind|ist|wäre\w*|zijn))? (?:möglich|denkbar|passend?|zutreffend"
    r"|richtig"
    r"|mogelijk|kunnen|können|antworten|lezingen|lesarten)|(?:is|remains) ambiguous|どちらとも"
    r"|どちらか"
    r"|場合による|によって)"
)
"""Words that leave an answer open."""

CONDITION = (
    r"(?:\b(?:if|unless|provided|assuming|otherwise|depending|wenn|falls (?:der|die|das|es|sie|er"
    r"|ich|man|du|ihr|wir|ein|kein|nicht|doch|dem|den)|sofern|sonst|sinon|à "
    r"condition|si|salvo que"
    r"|se|altrimenti|als|tenzij|anders|caso|senão)\b|場合|なら)"
)

CONFIRMED = (
    r"['\"”»)\]*_]*\s*(?:->|→|:|=|[–—-]) ?(?:yes|correct|true|right|ja|richtig|oui|vrai|sí|sì"
    r"|sim)\b|['\"”»)\]*_]*\s*(?:,?\s*(?:then|it is|it will be|it must be|i'd say|i would say"
    r"|i think|i "
    r"guess|i believe|naturally|obviously)\s*[.!,;:]"
    r"|(?:it is|is it)\b|(?:is|was|would be|seems|being) (?:the |my )?(?:\w+ )?(?:better|one|answer"
    r"|choice|option|label|match|pick|winner|correct|right|best|only|odd|most)\b"
    r"|(?:slightly |clearly |just |a little )?(?:ahead|the better|more likely|the more likely)\b"
    r"|(?:\w+ )?(?:fits?|suits?|matche?s?|works?|passt|passen|convient|encaja|si adatta|past"
    r"|combina|corresponde) (?:\w+ )?(?:better|best|more|besser|am besten|mieux|le mieux|mejor"
    r"|meglio"
    r"|beter|het beste|melhor)\b|(?: ?\w+){1,3} is (?:what|the one|the answer|the only)\b"
    r"|(?:team |queue |desk |department )?(?:should|must|has to|will|can) (?:handle|take|deal"
    r"|get|receive)\b|(?:is|was|seems) (?:correct|right|best|what|left|where|how|it)\b|(?:fits"
    r"|wins|applies|remains|follows|matches|prevails?|dominates?|predominates?|outweighs|überwiegt"
    r"|prévaut|predomina"
    r"|prevale)\b|ist (?:richtig|korrekt|es)|est (?:correcte?"
    r"|juste|la bonne)"
    r"|es (?:la )?(?:correct[ao]|respuesta)|è (?:corrett[ao]|giust[ao])|is (?:juist|correct)|é "
    r"(?:a )?(?:corret[ao]|resposta))"
    r"|[\"“”»]*\s*(?:ein(?:sortieren|ordnen|stufen)|zuordnen)\b|\s*is the \w{2,}est\b"
    r"|[」』\s]*(?:です|にします|に分類|が正解|が正しい|と判断|だと思|となります|になります)"
)
"""Words right after a mention that confirm it."""

CORRECTION = (
    r"(?:\b(?:wait|actually|(?<!this )(?<!a )change (?:my|the) (?:answer|mind)|make that"
    r"|correction|scratch that"
    r"|hold on|hmm+|no,|sorry(?! (?:to|for|about|that)\b)|let me (?:re|correct"
    r"|think)|on second thoughts?|i mean|rather,"
    r"|my mistake|i was wrong|strike that|reconsider|moment|halt|korrektur|nein,|quatsch|doch"
    r"|vielmehr|attendez|non,|pardon|en fait|plutôt|espera|perdón|mejor dicho|corrección"
    r"|aspetta|anzi|scusa|correzione|wacht|nee,|pardon|correctie|espera|aliás|desculpe|correção"
    r"|na verdade|well,|but then|then again|on the other hand|on reflection)\b"
    r"|待って|いや|訂正|すみません、)"
)

JOINED = (
    r"['\"”»)\]]*\s*(?:,\s*)?(?:/|\||or|and|und|oder|ou|et|o|u|y|e|of|en|nor|noch|ni|né|nem|または"
    r"|あるいは|か|と|、|,)"
    r"(?:\s*(?:else|perhaps|maybe|possibly|even|also|the|a|an|any|eventuell|vielleicht|peut-être"
    r"|quizás|forse|misschien|talvez"
    r"|option|definitely|just|rather|le|la|der|die|das|not|nicht|both))*\s*['\"“«(\[]*"
)
"""What joins two mentions to a list."""

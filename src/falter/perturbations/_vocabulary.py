"""Closed lists written for falter: words that noise must keep, and words it must not make."""

from __future__ import annotations

__all__ = ["COMMON", "KEPT", "word_set"]


def word_set(listed: str) -> frozenset[str]:
    """The words of a text."""
    return frozenset(listed.split())


# Negations, quantifiers and number words. Noise in one of these could turn the answer.
KEPT = word_set(
    """
    no not never none nor neither nobody nothing nowhere cannot without except unless hardly
    barely scarcely rarely seldom all any both each either every few fewer fewest half least
    less many more most much only several some enough everyone everybody everything
    everywhere anyone anybody anything anywhere someone somebody something always often
    sometimes zero one two three four five six seven eight nine ten eleven twelve thirteen
    fourteen fifteen sixteen seventeen eighteen nineteen twenty thirty forty fifty sixty
    seventy eighty ninety hundred thousand million billion trillion dozen pair single double
    triple once twice thrice first second third fourth fifth sixth seventh eighth ninth
    tenth last quarter percent plus minus times
    """
)

# Short common words: a slip of the finger must not turn one word into another.
COMMON = word_set(
    """
    a ace act add ago aid aim air ale all and ant any ape apt arc are ark arm art ash ask
    ate awe axe bad bag ban bar bat bay bed bee beg bet bid big bin bit bob bog bow box boy
    bud bug bun bus but buy bye cab can cap car cat cop cot cow cry cub cue cup cut dad dam
    day den dew did die dig dim din dip doe dog dot dry due dug dye ear eat ebb egg ego elf
    end era eve eye fad fan far fat fax fed fee few fig fin fit fix flu fly foe fog for fox
    fry fun fur gap gas gay gel gem get gig god got gum gun gut guy had ham has hat hay hen
    her hid him hip his hit hog hop hot how hub hue hug hut ice ill ink inn ion its ivy jam
    jar jaw jet job jog joy jug key kid kin kit lab lad lap law lay led leg let lid lie lip
    lit log lot low mad man map mat may men met mix mob mop mud mug nap net new nod nor not
    now nun nut oak oar odd off oil old one opt ore our out owe owl own pan par pat paw pay
    pea peg pen per pet pie pig pin pit ply pod pop pot pub put rag ram ran rap rat raw ray
    red rib rid rim rip rob rod rot row rub rug rum run rye sad sap sat saw say sea see set
    sew sex she shy sin sip sir sit six ski sky sly sob son sow spa spy sub sue sum sun tab
    tag tan tap tar tax tea ten the tie tin tip toe ton too top tow toy try tub two use van
    vet via vow wad war was wax way web wed wet who why wig win wit woe won yes yet you zip
    zoo able ache acid also area army atom aunt auto away baby back bail bait bake ball band
    bank bare bark barn base bath beam bean bear beat been beer bell belt bend best beta
    bike bill bind bird bite blow blue boat body boil bold bolt bomb bond bone book boot
    bore born boss both bowl brow bulb bulk bull burn bury bush busy cage cake call calm
    came camp cane cape card care cart case cash cast cave cell chat chip city clan clay
    clip club clue coal coat code coil coin cold come cone cook cool cope copy cord core
    cork corn cost crew crop cube cure cute damp dare dark data date dawn dead deaf deal
    dean dear debt deck deed deep deer deny desk dial dice diet dirt dish dive dock does
    doll dome done doom door dose down drag draw drop drug drum dual duck dull dumb dust
    duty each earn east easy echo edge else even ever evil exam exit face fact fade fail
    fair fake fall fame farm fast fate fear feed feel feet fell felt file fill film find
    fine fire firm fish five flag flat flaw flea flee flew flow foam fold folk fond food
    fool foot fore fork form fort foul four free from fuel full fund gain game gate gave
    gear gene gift girl give glad glue goal goat gold golf gone good gown grab gray grew
    grey grid grin grip grow gulf hair half hall halt hand hang hard hare harm hate have
    head heal heap hear heat heel held hell help herb herd here hero hide high hill hint
    hire hold hole holy home hood hook hope horn hose host hour huge hung hunt hurt idea
    idle inch into iron item jail join joke jump jury just keen keep kept kick kill kind
    king kiss knee knew knot know lack lady laid lake lamb lamp land lane last late lawn
    lazy lead leaf lean leap left lend lens less liar lice lick life lift like limb lime
    line link lion list live load loaf loan lock long look lord lose loss lost loud love
    luck lump lung made maid mail main make male mall many mark mask mass mate math meal
    mean meat meet melt menu mess mild mile milk mill mind mine mint miss mode mole mood
    moon more moss most moth move much must name navy near neat neck need nest news next
    nice nine node none noon nose note noun oath obey once only onto open oral oven over
    pace pack page paid pain pair pale palm park part pass past path peak pear peel peer
    pick pile pill pine pink pint pipe plan play plea plot plug plus poem poet pole poll
    pond pool poor pope pork port pose post pour pray prey pull pump pure push race rack
    rage raid rail rain rank rare rate read real rear rely rent rest rice rich ride ring
    riot rise risk road roam roar rock role roll roof room root rope rose ruin rule rush
    rust safe said sail sake sale salt same sand sang save scar seal seat seed seek seem
    seen self sell send sent shed ship shop shot show shut sick side sigh sign silk sing
    sink site size skin skip slam slip slow snap snow soap sock soft soil sold sole some
    song soon sore sort soul soup sour spin spot star stay stem step stir stop such suit
    sung sure swim tail take tale talk tall tank tape task team tear tell tend tent term
    test text than that them then they thin this thus tide tidy tile till time tiny tire
    told toll tone took tool torn tour town trap tray tree trim trip true tube tune turn
    twin type ugly unit upon urge used user vary vast verb very vice view vine visa vote
    wage wait wake walk wall want warm warn wash wave weak wear weed week well went were
    west what when whom wide wife wild will wind wine wing wipe wire wise wish with wolf
    wood wool word wore work worm worn wrap yard yeah year your zero zone angel angle beach
    beech being black blank bleed blood board bound brain brake brand bread break breed
    brick bride bring broad brown brush build cease chain chair chart chase cheap cheat
    check cheer chest chief child chose class clean clear click climb clock close cloth
    cloud coast could count court cover crash cream crime cross crowd dairy dance death
    delay diary doubt draft drain dream dress drift drink drive eight empty enter equal
    event exact exist extra faith false fever field fight final flame flash fleet flesh
    float flock flood floor flour force found frame fraud fresh front frost fruit grade
    grain grand grant grape grass grave great green greet group guard guess guest guide
    habit heart heavy hoist horse hotel house human image judge large laser later laugh
    learn least leave level light limit liver lives local loose lunch march marry match
    meant metal might model money month moral motor mount mouse mouth movie music nerve
    noise north novel nurse ocean offer order other ought paint panel paper party pause
    peace phone piece place plain plane plant plate point pound power press price pride
    prime print prize proof proud quick quiet quite quote raise range reach ready reign
    right river rough round route royal rural scale scare scene scent score sense serve
    shade shake shall shape share sharp sheep sheet shelf shell shift shine shirt shock
    shoot shore short shout sight skill sleep slide small smart smell smile smoke solid
    solve sorry sound south space spare speak speed spell spend spice split spoke sport
    staff stage stair stake stand stare start state steal steam steel steep stick still
    stock stone store storm story strip stuff style sugar super sweet swing table taste
    teach thank their theme there these thick thief thing think third those three throw
    tight tired title toast today tooth topic total touch tough tower track trade trail
    train treat trend trial tribe trick troop truck truly trust truth twice under union
    unite until upper upset urban usual valid value video virus visit voice waist waste
    watch water weigh weird wheel where which while white whole whose woman women world
    worry worse worst worth would wound wrist write wrong young youth fiend friend quit
    casual causal united untied trial though through thorough desert dessert
    """
)

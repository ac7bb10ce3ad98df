"""How the page looks: light and dark, wide and narrow, on screen and on paper."""

from __future__ import annotations

import re

from falter.report.drawing.examples import RECIPES
from falter.report.drawing.tables import STEPS

STYLE = """
:root{color-scheme:light dark;--bg:#fff;--soft:#f6f7f9;--ink:#1b1f24;--muted:#59636e;
--line:#d9dee4;--grid:#e9ecf0;--zero:#6b7580;--worse:#b3261e;--better:#22754a;--open:#59636e;--same:#0a62a9;
--avg:#8f6fc2;--item:#7a8796;--pert:#b5338f;--cond:#a97a00;--run:#16827c;
--read:#8a5a2b;--said:#6c7a1a;--host:#8d8272;
--del-bg:#ebedf0;--del:#4b545d;--ins-bg:#d3efea;--ins:#0b4f4a;--link:#0a62a9;
--mono:ui-monospace,SFMono-Regular,Menlo,Consolas,"Liberation Mono",monospace}
@media (prefers-color-scheme:dark){:root{--bg:#15181c;--soft:#1d2126;--ink:#e4e8ec;--muted:#a0aab5;
--line:#343b43;--grid:#262b31;--zero:#8b96a2;--worse:#ff8f85;--better:#6fc795;--open:#a0aab5;--same:#6cb6f5;
--avg:#a98fe0;--item:#7f8c9b;--pert:#e07cc4;--cond:#d3a429;--run:#4cc3ba;
--read:#c99562;--said:#b3c24f;--host:#b5aa98;
--del-bg:#343b43;--del:#c3ccd5;--ins-bg:#0e4642;--ins:#b9f0e9;--link:#8cc5f8}}
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%;text-size-adjust:100%}
body{margin:0;background:var(--bg);color:var(--ink);
font:16px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Liberation Sans",Arial,sans-serif;
font-variant-numeric:tabular-nums lining-nums;overflow-wrap:break-word}
main{min-width:0;width:100%;max-width:66rem;margin:0 auto;padding:2rem 1.5rem 4rem}
h1,h2,h3{line-height:1.25;margin:0;font-weight:650;text-wrap:balance}
h1{font-size:1.9rem;letter-spacing:-.015em}
h2{font-size:1.4rem;letter-spacing:-.01em;margin:0 0 .25rem}
h3{font-size:1.08rem;margin:2rem 0 .5rem}
.of{font-size:.95rem;font-weight:650;margin:0}
.side-of{font-size:.8rem;font-weight:600;color:var(--muted);margin:0 0 .35rem}
p{margin:.35rem 0}
a{color:var(--link)}
.away{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%)}
header h2{margin-top:2.25rem;margin-bottom:.5rem}
.eyebrow{font-size:.8rem;font-weight:600;letter-spacing:.04em;color:var(--muted);margin:0 0 .35rem}
.muted,.ci{color:var(--muted)}
.small{font-size:.85rem}
.ci{font-weight:400}
.chapter{margin-top:3rem;padding-top:1.5rem;border-top:1px solid var(--line)}
header+.chapter{margin-top:0;padding-top:0;border-top:0}
.chapter:has(>.figure:only-child>details:only-child){margin-top:.5rem;padding-top:.5rem}
.num{white-space:nowrap}
.num b{font-weight:600}
.none{text-decoration:none;color:var(--muted);cursor:help}
.note{border-left:3px solid var(--line);padding:.15rem 0 .15rem .8rem;margin:.6rem 0;
max-width:52rem;font-size:.92rem}
.numbers{display:grid;grid-template-columns:repeat(auto-fit,minmax(9rem,1fr));
gap:1.25rem 1.75rem;margin:1.5rem 0 1.75rem}
.numbers dt{font-size:.85rem;color:var(--muted)}
.numbers dd{margin:0}
.numbers .num{display:block}
.numbers b{display:block;font-size:1.75rem;line-height:1.25;letter-spacing:-.02em}
.numbers .ci{font-size:.9rem}
.numbers .none{font-size:1.75rem;line-height:1.25}
table{border-collapse:collapse;font-size:.875rem;line-height:1.35}
th,td{text-align:left;vertical-align:middle;font-weight:400;padding:.3rem .6rem}
thead th{font-weight:600;font-size:.8rem;color:var(--muted);vertical-align:bottom}
.r{text-align:right}
td.zero{color:var(--muted)}
.scroll{overflow-x:auto;margin:.5rem 0;border-block:1px solid var(--line)}
.scroll:focus-visible{outline:2px solid var(--link);outline-offset:2px}
.plain thead th{border-bottom:1px solid var(--line);white-space:nowrap}
.plain tbody tr+tr>*{border-top:1px solid var(--grid)}
.chart bdi{overflow-wrap:break-word}
.chart{width:100%;table-layout:auto;margin-top:.25rem}
.chart th,.chart td{padding:.28rem .5rem;height:1.9rem}
.chart th:first-child{padding-left:0}
.chart .r{white-space:nowrap;width:1%}
.chart .plot{position:relative;width:50%;min-width:7rem;padding:0}
.chart:has(.wide) .plot{width:34%}
.chart:has(.called) tbody th{min-width:14rem}
.chart .plot svg{position:absolute;inset:0;width:100%;height:100%;overflow:visible}
.called{display:block}
.chart .recipe{display:block;font-size:.75rem;color:var(--muted)}
.chart .change{display:block;font-size:.78rem;color:var(--muted);max-width:19rem}
.few,.few b,.chart .few .num b{color:var(--muted)!important;font-style:italic}
.scant{font-style:italic}
.chart .group th,.chart .total th{font-weight:600}
.chart tbody+tbody tr:first-child>*{border-top:1px solid var(--line)}
.chart thead th{border-bottom:1px solid var(--line);height:2rem}
.chart .member .num b{font-weight:400}
.chart .worse b{color:var(--worse);font-weight:600!important}
.chart .better b{color:var(--better);font-weight:600!important}
.chart tbody tr:hover>*{background:var(--soft)}
svg .at{width:1px;height:1px}
.chart .plot svg.at{position:static;inset:auto;width:1px;height:1px}
svg text{font-size:.75rem;fill:var(--muted);text-anchor:middle;font-weight:400}
line.grid{stroke:var(--grid)}
line.zero{stroke:var(--zero)}
line.average{stroke:var(--avg);stroke-width:1.5;opacity:.75}
.whisker{stroke-width:2}
.worse .whisker,.worse .dot{stroke:var(--worse)}
.better .whisker,.better .dot{stroke:var(--better)}
.open .whisker,.open .dot{stroke:var(--open)}
.dot{stroke-width:1.75}
.worse .dot,.worse .arrow{fill:var(--worse)}
.better .dot,.better .arrow{fill:var(--better)}
.open .dot{fill:var(--bg)}
.open .arrow{fill:var(--open)}
.same .whisker,.same .dot{stroke:var(--same)}
.same .dot{fill:var(--bg)}
.same .arrow{fill:var(--same)}
.legend li,.legend bdi{min-width:0;max-width:100%;overflow-wrap:anywhere}
.legend{display:flex;flex-wrap:wrap;gap:.2rem 1.4rem;list-style:none;
margin:.75rem 0 .5rem;padding:0;font-size:.8rem;color:var(--muted)}
.legend svg{width:26px;height:16px;vertical-align:-3px;margin-right:.45rem;overflow:visible}
.legend li:has(>svg){padding-left:calc(26px + .45rem)}
.legend li>svg{margin-left:calc(-26px - .45rem)}
.pair{display:grid;grid-template-columns:minmax(0,1fr) minmax(0,1fr);gap:1.25rem 2rem}
.sides{grid-template-rows:repeat(4,auto);row-gap:0}
.side{display:grid;grid-row:span 4;grid-template-rows:subgrid;align-content:start;align-items:start}
.bar{display:block;width:100%;height:1.6rem;margin:.5rem 0 .4rem}
.bar rect{stroke:var(--bg);stroke-width:2}
.parts{width:100%}
.parts th:first-child,.options th:first-child,.reasons th:first-child{padding-left:0}
.parts tr>:last-child,.options tr>:last-child,.reasons tr>:last-child{padding-right:0}
.swatch{display:inline-block;width:.7rem;height:.7rem;border-radius:2px;margin-right:.5rem}
.c-item{fill:var(--item);background:var(--item)}
.c-pert{fill:var(--pert);background:var(--pert)}
.c-cond{fill:var(--cond);background:var(--cond)}
.c-run{fill:var(--run);background:var(--run)}
.examples fieldset{border:0;margin:.6rem 0;padding:0;min-width:0}
.examples legend{float:left;padding:.2rem .7rem 0 0;min-width:4rem;font-size:.85rem;
color:var(--muted)}
.examples label{display:inline-block;margin:0 .35rem .35rem 0;cursor:pointer;position:relative}
.examples label>span{display:inline-block;padding:.1rem .7rem;border:1px solid var(--line);
border-radius:1rem;font-size:.85rem}
.examples input:checked+span{background:var(--ink);color:var(--bg);border-color:var(--ink)}
.examples input:focus-visible+span{outline:2px solid var(--link);outline-offset:2px}
.example{margin:0;padding:.55rem 0;border-top:1px solid var(--line)}
.example,.change,footer,.signature{overflow-wrap:anywhere}
.example>summary{font-weight:400}
.turned{display:inline-block;min-width:4.2rem;font-weight:650}
.examples:has(.only-lost:checked) .example.gained{display:none}
.examples:has(.only-gained:checked) .example.lost{display:none}
.expected{margin:.3rem 0 .8rem;font-size:.9rem}
.prompt{height:100%;white-space:pre-wrap;font:.85rem/1.55 var(--mono);background:var(--soft);
border-radius:6px;padding:.75rem .9rem;overflow:hidden}
.answer{margin-top:.6rem;font-size:.9rem}
.said{white-space:pre-wrap;unicode-bidi:isolate}
.verdict{font-weight:650;margin-right:.35rem;white-space:nowrap}
mark,del{border-radius:3px;padding:.05em .1em;-webkit-box-decoration-break:clone;
box-decoration-break:clone}
mark{background:var(--ins-bg);color:var(--ins)}
del{background:var(--del-bg);color:var(--del);text-decoration:line-through;
text-decoration-thickness:1px}
del.long{text-decoration:none}
.caret{display:inline-block;width:3px;height:1.1em;margin:0 1px;border-radius:1px;cursor:help;
vertical-align:text-bottom;background:var(--ins)}
.caret.removed{background:var(--del)}
.ctl{font:.82em var(--mono);color:var(--muted);border-radius:2px;unicode-bidi:isolate}
mark .ctl,del .ctl{color:inherit;opacity:.75}
.options{width:100%;margin-top:.6rem;font-size:.82rem}
.reasons{width:100%;max-width:48rem}
.signature{margin-top:1.5rem;font-size:.78rem;color:var(--muted)}
code{font-family:var(--mono);font-size:.95em}
details{margin:.75rem 0}
summary{cursor:pointer;font-weight:600}
.guide{margin-top:3rem;border-top:1px solid var(--line);padding-top:1rem}
.guide li{margin:.35rem 0;max-width:46rem}
footer{margin-top:2rem;font-size:.78rem;color:var(--muted)}
footer p{margin:.1rem 0}
.short{margin-top:1.5rem}
.short h2{font-size:.85rem;font-weight:600;letter-spacing:.03em;color:var(--muted);margin:0}
.short .lead{font-size:1.45rem;line-height:1.35;font-weight:600;letter-spacing:-.01em;
margin:.25rem 0 .8rem;max-width:none}
.short p{font-size:1.05rem;max-width:52rem;overflow-wrap:anywhere}
.chapter:has(>.short){margin-top:0;padding-top:0;border-top:0}
.contents{font-size:.9rem;background:var(--bg);border-bottom:1px solid var(--line);position:sticky;
top:0;z-index:3;padding:.45rem 1.5rem}
.contents label{cursor:pointer;font-weight:600;display:block;position:relative}
.contents label span::after{content:" ▾";color:var(--muted)}
.contents input:focus-visible+span{outline:2px solid var(--link);outline-offset:2px}
.contents:not(:has(:checked)) ol{display:none}
.contents ol{list-style:none;margin:.4rem 0 .3rem;padding:0;max-height:70vh;overflow-y:auto}
.contents li{padding:.2rem 0;line-height:1.3}
.contents a{text-decoration:none}
.contents a:hover{text-decoration:underline}
.figure,.chapter{scroll-margin-top:3rem}
@media screen and (min-width:1240px){
body{display:grid;grid-template-columns:14rem minmax(0,66rem);justify-content:center;
column-gap:1.5rem}
.contents{align-self:start;max-height:100vh;overflow-y:auto;border:0;padding:2.2rem 0 2rem 1rem}
.contents label{cursor:default;pointer-events:none;color:var(--muted)}
.contents label span::after{content:""}
.contents ol,.contents:not(:has(:checked)) ol{display:block;max-height:none}
.figure,.chapter{scroll-margin-top:.5rem}
}
@media screen and (max-width:760px){
main{padding:1.25rem 1rem 3rem}
.contents{padding:.45rem 1rem}
h1{font-size:1.5rem}
.short .lead{font-size:1.15rem;margin-bottom:.5rem}
.short p{font-size:.97rem;margin:.3rem 0}
.numbers{grid-template-columns:1fr 1fr;gap:1.1rem 1.25rem}
.numbers b,.numbers .none{font-size:1.4rem}
.pair{grid-template-columns:minmax(0,1fr)}
.sides{grid-template-rows:auto}
.side+.side{margin-top:1.25rem}
.examples legend{float:none}
.legend{display:grid;grid-template-columns:repeat(2,minmax(0,max-content))}
.wide{display:none}
.chart .num{white-space:normal}
.chart .num b{display:block}
.chart .ci{font-size:.75rem;white-space:nowrap}
.chart thead .ci{display:none}
.chart .plot,.chart:has(.wide) .plot{width:auto;min-width:5.5rem}
.chart th,.chart th bdi{overflow-wrap:anywhere}
.chart tbody th:first-child,.chart:has(.called) tbody th{min-width:6.8rem}
.chart thead th.r{min-width:6rem}
.chart th,.chart td{padding-inline:.25rem}
.cards,.cards tbody,.cards tr,.cards td,.cards th{display:block}
.cards thead{position:absolute;clip-path:inset(50%);height:1px;overflow:hidden}
.cards tr{padding:.45rem 0;border-top:1px solid var(--line)}
.cards tbody tr>*,.cards tbody tr+tr>*,.cards tbody+tbody tr:first-child>*{border:0;
padding:.12rem 0;text-align:left;max-width:none;min-width:0}
.cards tbody th{font-weight:600;position:static}
.cards td{display:flex;justify-content:space-between;align-items:baseline;gap:1rem}
.cards td:empty{display:none}
.cards td::before{content:attr(data-label);color:var(--muted);font-size:.8rem;flex:0 1 auto}
.cards td>*{text-align:right}
.cards .num,.cards .num b{display:inline!important}
}
@media print{
@page{margin:14mm}
body{font-size:9.5pt;background:#fff}
main{max-width:none;padding:0}
.contents,.examples fieldset{display:none}
details::details-content{content-visibility:visible;display:block;block-size:auto;opacity:1}
details>summary{list-style:none;break-after:avoid}
.examples .example{display:block!important;break-inside:avoid}
.numbers,.chart tr,.pair>.side,.short{break-inside:avoid}
h2,h3,.figure>p,thead,.legend,.key{break-after:avoid}
.chapter{margin-top:1.5rem;padding-top:.8rem}
.scroll{overflow:visible;border:0}
.chart{font-size:8pt}
.chart:has(.wide) .plot{width:30%;min-width:7rem}
.chart:has(.called) tbody th{min-width:9rem}
svg text.wide{display:none}
.chart th,.chart td{padding:.15rem .25rem;height:1.4rem}
.plain{font-size:7.5pt}
.plain th,.plain td{padding:.12rem .2rem}
.plain thead th{white-space:normal;font-size:7pt}
.short .lead{font-size:14pt}
}
"""


# How the figures of a study look, beyond what all pages share.


_LIGHT = (
    "--hz:#f1f3f5;--tz:#1b1f24;"
    "--hn1:#e6eaee;--tn1:#1b1f24;--hn2:#cdd5dd;--tn2:#1b1f24;--hn3:#aab6c2;--tn3:#1b1f24;"
    "--hn4:#8291a0;--tn4:#0f1215;--hn5:#55636f;--tn5:#ffffff;--hn6:#333f4a;--tn6:#ffffff;"
    "--k0:#a3316f;--k1:#16827c;--k2:#8a6d00;--k3:#6b5b4b;--k4:#5f7a1c;--k5:#66717d;"
    "--alarm:#fff3d6;--alarm-line:#b07a00;--alarm-ink:#4f3700"
)
_DARK = (
    "--hz:#262b31;--tz:#f7f9fa;"
    "--hn1:#2f363d;--tn1:#f7f9fa;--hn2:#3d4650;--tn2:#f7f9fa;--hn3:#515c67;--tn3:#f7f9fa;"
    "--hn4:#7d8a97;--tn4:#0f1215;--hn5:#a3afba;--tn5:#0f1215;--hn6:#ccd5de;--tn6:#0f1215;"
    "--k0:#e886c0;--k1:#4cc3ba;--k2:#d3b429;--k3:#b8a794;--k4:#a9c552;--k5:#98a4b0;"
    "--alarm:#3a2e10;--alarm-line:#d3a429;--alarm-ink:#ffe7ad"
)
_VALUES = dict(re.findall(r"--([ht][a-z0-9]+):(#[0-9a-f]{6})", _LIGHT))
LIGHT_SHADES = {
    name[1:]: (ground, _VALUES[f"t{name[1:]}"])
    for name, ground in _VALUES.items()
    if name.startswith("h")
}
"""Ground and ink of each shade of a heat map on white."""
_SHADES = "".join(
    f".h-{name}{{background:var(--h{name});color:var(--t{name})}}\n"
    for name in ("z", *(f"n{step}" for step in range(1, STEPS + 1)))
)
_FILTERS = "".join(
    f".examples:has(.only-r{at}:checked) .example:not(.r{at}){{display:none}}\n"
    for at in range(RECIPES)
)
_CURVES = "".join(f".k{at}{{--k:var(--k{at})}}\n" for at in range(6))

FIGURE_STYLE = (
    f":root{{{_LIGHT}}}\n@media (prefers-color-scheme:dark){{:root{{{_DARK}}}}}\n"
    f"{_SHADES}{_CURVES}{_FILTERS}"
    """
.facts{font-size:.9rem;color:var(--muted);margin:.2rem 0}
.alarm{margin:1rem 0;padding:.45rem .9rem;border:1px solid var(--alarm-line);font-size:.92rem;
border-left-width:5px;border-radius:5px;background:var(--alarm);color:var(--alarm-ink)}
.figure+.figure{margin-top:2rem}
.figure .no{color:var(--muted);font-weight:400;margin-right:.6rem}
.figure>p,.figure>details>p{max-width:48rem}
.figure .down,.figure .across{font-size:.75rem;color:var(--muted);font-weight:400}
.fig,.heat{width:auto}
.fig{min-width:55%}
.fig bdi{display:inline-block;max-width:24rem;overflow-wrap:break-word}
.fig thead bdi{max-width:9rem;white-space:normal}
.fig tbody>tr>*{vertical-align:top}
.fig .stick,.heat .stick{position:sticky;left:0;z-index:1;background:var(--bg)}
.fig tbody .stick{min-width:9.5rem}
.fig tbody+tbody tr:first-child>*{border-top:1px solid var(--line)}
.fig .num .ci{font-size:.78rem}
.fig .r .num{display:inline-block;text-align:right}
.fig .r .num b{display:block;font-weight:400}
.fig .worse b{color:var(--worse);font-weight:650!important}
.fig .better b{color:var(--better);font-weight:650!important}
.fig .over,.heat .over{text-align:center;border-bottom:1px solid var(--line)}
.fig .starts,.fig .over+.over{border-left:1px solid var(--grid)}
.fig tbody tr:hover>*{background:var(--soft)}
.heat{border-collapse:separate;border-spacing:2px;width:auto;min-width:min(100%,48rem)}
.heat td{text-align:center;padding:.55rem .35rem;min-width:3.4rem;width:5.5rem;border-radius:3px}
.heat th{padding:.3rem .5rem}
.heat tbody th{min-width:11rem}
.heat .over{padding-bottom:.2rem}
.heat thead tr+tr th{text-align:center;font-weight:400;color:var(--ink);vertical-align:bottom}
.heat thead tr+tr bdi{display:inline-block;max-width:6.5rem;overflow-wrap:break-word}
.heat tbody bdi{display:inline-block;max-width:12rem;overflow-wrap:break-word}
.heat.many td{min-width:2.7rem;padding:.45rem .15rem;font-size:.8rem}
.heat.many thead tr+tr bdi{writing-mode:vertical-rl;transform:rotate(180deg);max-width:none;
max-height:9rem;text-align:left}
.heat .clear{font-weight:700}
.heat .void{background:repeating-linear-gradient(135deg,var(--grid) 0 1px,transparent 1px 6px)}
.key{display:flex;flex-wrap:wrap;align-items:center;gap:.3rem 1rem;font-size:.8rem;
color:var(--muted);margin:.9rem 0 .6rem}
.ramp{display:inline-flex;border-radius:3px;overflow:hidden}
.ramp span{width:1.15rem;height:.95rem}
.key .scale{display:inline-flex;align-items:center;gap:.6rem}
.key b{color:var(--ink)}
.panes{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,21rem),1fr));
gap:1.5rem 2.25rem;margin:1rem 0 .75rem}
.panes.one{grid-template-columns:minmax(0,44rem)}
.pane .facet{margin:0 0 .15rem;font-size:1rem;font-weight:650}
.pane p{margin:0}
.pane .across{text-align:center;padding-left:2.6rem}
.plane{display:grid;grid-template-columns:2.6rem minmax(0,1fr);grid-template-rows:13.5rem 1.5rem;
column-gap:.5rem;margin-top:.45rem}
.plane svg{display:block;width:100%;height:100%;overflow:visible}
.plane .up text{text-anchor:end}
.plane .along{grid-column:2}
.plane svg.at,.strips svg.at,.legend svg.at{width:1px;height:1px}
.area path,.legend .curve{vector-effect:non-scaling-stroke}
.curve{fill:none;stroke:var(--k);stroke-width:2;stroke-linejoin:round}
.reach{fill:none;stroke:var(--k);stroke-width:1.5;opacity:.7}
.band{fill:var(--k);opacity:.13}
.mark{fill:var(--k);stroke:var(--bg);stroke-width:1}
.hollow .mark{fill:var(--bg);stroke:var(--k);stroke-width:1.75}
.legend svg:has(.curve){width:30px}
.figure .legend{gap:.35rem 1.6rem;font-size:.85rem;color:var(--ink);margin:1rem 0 .75rem}
.stacks thead th,.strips thead th{border-bottom:0;height:1.3rem}
.stacks thead td,.strips thead td{height:auto;padding-block:0 .25rem;text-align:center;
border-bottom:1px solid var(--line)}
.stacks tbody th,.strips tbody th{max-width:17rem}
.stacks thead th.r,.strips thead th.r{white-space:normal;overflow-wrap:break-word;
padding-bottom:.25rem;border-bottom:1px solid var(--line)}
.stacks .said td{height:auto;padding-block:0 .6rem;font-size:.8rem;color:var(--muted)}
.stacks .said p{margin:0;max-width:none}
.stacks .whole{stroke:var(--ink);stroke-width:2}
.stacks rect{stroke:var(--bg);stroke-width:1}
.c-more{fill:var(--read);background:var(--read)}
.c-rest{fill:var(--said);background:var(--said)}
.c-host{fill:var(--host);background:var(--host)}
.strips tbody tr>*{height:2.5rem}
.strips .plot{width:58%}
.strips tbody th[rowspan]{vertical-align:middle}
.strips .kind{padding-left:.5rem!important;color:var(--muted);white-space:nowrap}
.strips .mark{opacity:.85}
.k9{--k:var(--muted)}
.box{fill:var(--k);opacity:.16}
.median{stroke:var(--k);stroke-width:2}
.fold>summary{font-size:.9rem;color:var(--muted);font-weight:400}
.fold>summary:hover{color:var(--ink)}
.command{white-space:nowrap}
.dashes{margin-top:.6rem}
@media screen and (max-width:760px){
.fig bdi{max-width:100%}
.fig tbody .stick,.heat tbody .stick{min-width:0}
.stacks tbody th,.strips tbody th{max-width:7.5rem}
.strips .kind{white-space:normal}
.strips .kind bdi{max-width:4.8rem;font-size:.78rem}
.plane{grid-template-rows:12rem 1.5rem}
.heat,.heat tbody{display:block}
.heat{min-width:0}
.heat thead{position:absolute;clip-path:inset(50%);height:1px;overflow:hidden}
.heat tr{display:flex;flex-wrap:wrap;gap:2px;margin-bottom:.6rem}
.heat tbody th{min-width:0;flex:0 0 100%;position:static;font-weight:600;padding:.2rem 0}
.heat td,.heat.many td{min-width:5.2rem;width:auto;flex:1 0 5.2rem;max-width:10rem;padding:.3rem}
.heat td::before{content:attr(data-label);display:block;font-size:.7rem;opacity:.85}
}
@media print{
.figure{break-inside:auto}
.pane,.heat tr,.fig tr,.strips tbody,.stacks tr,.alarm{break-inside:avoid}
.heat td,.ramp span,.swatch,.alarm{print-color-adjust:exact;-webkit-print-color-adjust:exact}
.heat td{min-width:0;width:auto}
.fig .num .ci{font-size:6.5pt}
.fig .stick,.heat .stick{position:static;min-width:0}
.panes{grid-template-columns:1fr 1fr}
}
"""
)

"""How the page looks: light and dark, wide and narrow, on screen and on paper."""

from __future__ import annotations

__all__ = ["STYLE"]

STYLE = """
:root{color-scheme:light dark;--bg:#fff;--soft:#f6f7f9;--ink:#1b1f24;--muted:#59636e;
--line:#d9dee4;--grid:#e9ecf0;--zero:#6b7580;--worse:#b5450b;--better:#0a62a9;--open:#59636e;--same:#22754a;
--avg:#8f6fc2;--item:#7a8796;--pert:#c8540f;--cond:#a97a00;--run:#2f86bd;
--del-bg:#fde7dd;--del:#8f2f00;--ins-bg:#d9ecfb;--ins:#084a80;--link:#0a62a9;
--mono:ui-monospace,SFMono-Regular,Menlo,Consolas,"Liberation Mono",monospace}
@media (prefers-color-scheme:dark){:root{--bg:#15181c;--soft:#1d2126;--ink:#e4e8ec;--muted:#a0aab5;
--line:#343b43;--grid:#262b31;--zero:#8b96a2;--worse:#ff9a66;--better:#6cb6f5;--open:#a0aab5;--same:#6fc795;
--avg:#a98fe0;--item:#7f8c9b;--pert:#ec7f3f;--cond:#d3a429;--run:#5fb0e0;
--del-bg:#4a2415;--del:#ffc3a6;--ins-bg:#123a5c;--ins:#bfe0fb;--link:#8cc5f8}}
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%;text-size-adjust:100%}
body{margin:0;background:var(--bg);color:var(--ink);
font:16px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Liberation Sans",Arial,sans-serif;
font-variant-numeric:tabular-nums lining-nums;overflow-wrap:anywhere}
main{max-width:66rem;margin:0 auto;padding:2.5rem 1.5rem 4rem}
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
.note{border-left:3px solid var(--avg);padding:.15rem 0 .15rem .8rem;margin:.6rem 0;max-width:52rem;
font-size:.92rem}
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
.full{width:100%;overflow-wrap:normal}
.full bdi,.chart bdi{display:inline-block;width:max-content;max-width:15rem;overflow-wrap:anywhere}
.chart bdi{max-width:19rem}
.full tbody>tr>*{vertical-align:top}
.full .num .ci{font-size:.8rem}
.full .r .num{display:inline-block;text-align:right}
.full .r .num b{display:block}
.full th:first-child{position:sticky;left:0;background:var(--bg)}
.full.words td,.full.words th{vertical-align:top;min-width:9rem}
.chart{width:100%;table-layout:auto;margin-top:.25rem}
.chart th,.chart td{padding:.28rem .5rem;height:1.9rem}
.chart th:first-child{padding-left:0}
.chart .r{white-space:nowrap;width:1%}
.chart .plot{position:relative;width:50%;min-width:7rem;padding:0}
.chart .plot svg{position:absolute;inset:0;width:100%;height:100%;overflow:visible}
.chart tbody .member th{padding-left:1rem}
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
.thin{stroke-width:.9;stroke:var(--open)}
.same .whisker,.same .dot{stroke:var(--same)}
.same .dot{fill:var(--bg)}
.same .arrow{fill:var(--same)}
.legend{display:flex;flex-wrap:wrap;gap:.2rem 1.4rem;list-style:none;
margin:.75rem 0 .5rem;padding:0;font-size:.8rem;color:var(--muted)}
.legend svg{width:26px;height:16px;vertical-align:-3px;margin-right:.45rem;overflow:visible}
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
.example{margin:1.25rem 0 2rem;padding-top:1rem;border-top:1px solid var(--line)}
.expected{margin:.3rem 0 .8rem;font-size:.9rem}
.prompt{height:100%;white-space:pre-wrap;font:.85rem/1.55 var(--mono);background:var(--soft);
border-radius:6px;padding:.75rem .9rem;overflow:hidden}
.answer{margin-top:.6rem;font-size:.9rem}
.said{white-space:pre-wrap;unicode-bidi:isolate}
.verdict{font-weight:650;margin-right:.35rem;white-space:nowrap}
.right{color:var(--better)}
.wrong{color:var(--worse)}
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
@media (max-width:760px){
main{padding:1.5rem 1rem 3rem}
h1{font-size:1.5rem}
.numbers{grid-template-columns:1fr 1fr;gap:1.1rem 1.25rem}
.numbers b,.numbers .none{font-size:1.4rem}
.pair{grid-template-columns:minmax(0,1fr)}
.sides{grid-template-rows:auto}
.side+.side{margin-top:1.25rem}
.full bdi{max-width:9rem}
.chart bdi{max-width:7.5rem}
.wide{display:none}
.chart .num b{display:block}
.chart .ci{font-size:.75rem}
.chart thead .ci{display:none}
.chart .plot{width:auto;min-width:6.5rem}
.chart th,.chart td{padding-inline:.3rem}
.chart tbody .member th{padding-left:.6rem}
.full th:first-child{position:static}
}
@media print{
body{font-size:11pt;background:#fff}
main{max-width:none;padding:0}
.example,.numbers,.chart tr,.pair{break-inside:avoid}
h2,h3{break-after:avoid}
.scroll{overflow:visible}
.full{font-size:6.5pt}
.full th,.full td{padding:.15rem .2rem}
.full thead th{white-space:normal}
}
"""

"""How the figures of a study look, beyond what all pages share."""

from __future__ import annotations

from falter.report.drawing._heat import STEPS

__all__ = ["FIGURE_STYLE"]

_LIGHT = (
    "--hz:#f1f3f5;--tz:#1b1f24;--hw1:#fde6d3;--tw1:#1b1f24;--hw2:#fbcda8;--tw2:#1b1f24;"
    "--hw3:#f5ad77;--tw3:#1b1f24;--hw4:#e58a4a;--tw4:#1b1f24;--hw5:#b9500f;--tw5:#ffffff;"
    "--hw6:#8c3403;--tw6:#ffffff;--hb1:#dceaf7;--tb1:#1b1f24;--hb2:#b9d5ef;--tb2:#1b1f24;"
    "--hb3:#8fbae3;--tb3:#1b1f24;--hb4:#629dd2;--tb4:#1b1f24;--hb5:#2b6fb3;--tb5:#ffffff;"
    "--hb6:#0b4a84;--tb6:#ffffff;"
    "--k0:#c8540f;--k1:#1d74b4;--k2:#7d5bb5;--k3:#977000;--k4:#2c7f6b;--k5:#66717d;"
    "--alarm:#fff3d6;--alarm-line:#b07a00;--alarm-ink:#4f3700"
)
_DARK = (
    "--hz:#262b31;--tz:#f7f9fa;--hw1:#4a3526;--tw1:#f7f9fa;--hw2:#6e482c;--tw2:#f7f9fa;"
    "--hw3:#965b31;--tw3:#f7f9fa;--hw4:#c67842;--tw4:#0f1215;--hw5:#e8935a;--tw5:#0f1215;"
    "--hw6:#ffb684;--tw6:#0f1215;--hb1:#27405a;--tb1:#f7f9fa;--hb2:#325a80;--tb2:#f7f9fa;"
    "--hb3:#3b71a3;--tb3:#f7f9fa;--hb4:#5a94c8;--tb4:#0f1215;--hb5:#7db2e2;--tb5:#0f1215;"
    "--hb6:#a6d0f7;--tb6:#0f1215;"
    "--k0:#f08a4b;--k1:#5fb0e8;--k2:#b397ea;--k3:#d3a429;--k4:#5cc2a8;--k5:#98a4b0;"
    "--alarm:#3a2e10;--alarm-line:#d3a429;--alarm-ink:#ffe7ad"
)
_SHADES = "".join(
    f".h-{name}{{background:var(--h{name});color:var(--t{name})}}\n"
    for name in ("z", *(f"{side}{step}" for side in "wb" for step in range(1, STEPS + 1)))
)
_CURVES = "".join(f".k{at}{{--k:var(--k{at})}}\n" for at in range(6))

FIGURE_STYLE = (
    f":root{{{_LIGHT}}}\n@media (prefers-color-scheme:dark){{:root{{{_DARK}}}}}\n{_SHADES}{_CURVES}"
    """
.facts{display:grid;grid-template-columns:max-content minmax(0,1fr);gap:.3rem 1.5rem;
margin:1.25rem 0 0;font-size:.92rem}
.facts dt{color:var(--muted)}
.facts dd{margin:0}
.facts ul{list-style:none;margin:0;padding:0;display:flex;flex-wrap:wrap;gap:.1rem 1.25rem}
.alarm{margin:1.5rem 0;padding:.8rem 1.1rem;border:1px solid var(--alarm-line);
border-left-width:6px;border-radius:6px;background:var(--alarm);color:var(--alarm-ink)}
.alarm p{margin:.1rem 0}
.contents{margin:1.75rem 0 0;padding:1rem 1.25rem 1.1rem;background:var(--soft);border-radius:8px}
.contents h2{font-size:.95rem;margin-bottom:.5rem}
.contents ol{margin:0;padding:0;list-style:none;columns:2;column-gap:2.5rem;font-size:.92rem}
.contents li{break-inside:avoid;padding:.14rem 0 .14rem 1.7rem;text-indent:-1.7rem}
.contents li>span{display:inline-block;width:1.7rem;text-indent:0;color:var(--muted)}
.contents a{text-decoration-thickness:1px;text-underline-offset:.15em}
.figure{scroll-margin-top:.5rem}
.figure+.figure{margin-top:2rem}
.figure .no{color:var(--muted);font-weight:400;margin-right:.6rem}
.figure>p,.figure>details>p{max-width:48rem}
.figure .down,.figure .across{font-size:.75rem;color:var(--muted);font-weight:400}
.fig,.heat{width:100%;overflow-wrap:normal}
.fig bdi{display:inline-block;max-width:15rem;overflow-wrap:break-word}
.fig thead bdi{max-width:9rem;white-space:normal}
.fig tbody>tr>*{vertical-align:top}
.fig .stick,.heat .stick{position:sticky;left:0;z-index:1;background:var(--bg)}
.fig tbody .stick{min-width:9.5rem}
.figure .scroll{background:linear-gradient(to left,var(--bg) 40%,transparent) right/3rem 100%
no-repeat local,linear-gradient(to left,var(--line),transparent) right/1.1rem 100% no-repeat scroll}
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
.stacks .said td{height:auto;padding-block:0 .55rem;font-size:.82rem;color:var(--muted)}
.stacks .said p{margin:.1rem 0;max-width:46rem}
.stacks .whole{stroke:var(--ink);stroke-width:2}
.stacks rect{stroke:var(--bg);stroke-width:1}
.c-more{fill:var(--avg);background:var(--avg)}
.c-rest{fill:var(--k4);background:var(--k4)}
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
@media (max-width:760px){
.facts{grid-template-columns:minmax(0,1fr);gap:0}
.facts dd{margin-bottom:.45rem}
.contents ol{columns:1}
.fig bdi{max-width:9rem}
.fig tbody .stick,.heat tbody .stick{min-width:0;max-width:6.5rem}
.fig .stick bdi,.heat .stick bdi{max-width:6rem}
.stacks tbody th,.strips tbody th{max-width:7rem}
.strips .kind{white-space:normal}
.strips .kind bdi{max-width:4.8rem;font-size:.78rem}
.plane{grid-template-rows:12rem 1.5rem}
}
@media print{
.figure{break-inside:auto}
.pane,.heat tr,.fig tr,.strips tbody,.stacks tr,.alarm{break-inside:avoid}
.heat td,.ramp span,.swatch,.alarm,.contents{print-color-adjust:exact;
-webkit-print-color-adjust:exact}
.fig{font-size:6.5pt}
.fig th,.fig td{padding:.12rem .16rem}
.fig .num .ci{font-size:5.5pt}
.fig .stick,.heat .stick{position:static;min-width:0}
.panes{grid-template-columns:1fr 1fr}
.fold:not([open]){display:none}
}
"""
)

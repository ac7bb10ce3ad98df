"""How the figures of a study look, beyond what all pages share."""

from __future__ import annotations

import re

from falter.report.drawing._examples import RECIPES
from falter.report.drawing._heat import STEPS

__all__ = ["FIGURE_STYLE", "LIGHT_SHADES"]

_LIGHT = (
    "--hz:#f1f3f5;--tz:#1b1f24;--hw1:#fde6d3;--tw1:#1b1f24;--hw2:#fbcda8;--tw2:#1b1f24;"
    "--hw3:#f5ad77;--tw3:#1b1f24;--hw4:#e58a4a;--tw4:#1b1f24;--hw5:#b9500f;--tw5:#ffffff;"
    "--hw6:#8c3403;--tw6:#ffffff;--hb1:#dceaf7;--tb1:#1b1f24;--hb2:#b9d5ef;--tb2:#1b1f24;"
    "--hb3:#8fbae3;--tb3:#1b1f24;--hb4:#629dd2;--tb4:#1b1f24;--hb5:#2b6fb3;--tb5:#ffffff;"
    "--hb6:#0b4a84;--tb6:#ffffff;"
    "--hn1:#e6eaee;--tn1:#1b1f24;--hn2:#cdd5dd;--tn2:#1b1f24;--hn3:#aab6c2;--tn3:#1b1f24;"
    "--hn4:#8291a0;--tn4:#0f1215;--hn5:#55636f;--tn5:#ffffff;--hn6:#333f4a;--tn6:#ffffff;"
    "--k0:#a3316f;--k1:#16827c;--k2:#8a6d00;--k3:#6b5b4b;--k4:#5f7a1c;--k5:#66717d;"
    "--alarm:#fff3d6;--alarm-line:#b07a00;--alarm-ink:#4f3700"
)
_DARK = (
    "--hz:#262b31;--tz:#f7f9fa;--hw1:#4a3526;--tw1:#f7f9fa;--hw2:#6e482c;--tw2:#f7f9fa;"
    "--hw3:#965b31;--tw3:#f7f9fa;--hw4:#c67842;--tw4:#0f1215;--hw5:#e8935a;--tw5:#0f1215;"
    "--hw6:#ffb684;--tw6:#0f1215;--hb1:#27405a;--tb1:#f7f9fa;--hb2:#325a80;--tb2:#f7f9fa;"
    "--hb3:#3b71a3;--tb3:#f7f9fa;--hb4:#5a94c8;--tb4:#0f1215;--hb5:#7db2e2;--tb5:#0f1215;"
    "--hb6:#a6d0f7;--tb6:#0f1215;"
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
    for name in ("z", *(f"{side}{step}" for side in "wbn" for step in range(1, STEPS + 1)))
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

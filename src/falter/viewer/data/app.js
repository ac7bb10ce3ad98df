// The page: the map, the list of flips, the item that is open. All of its state is in the address.
import { html, render, useEffect, useMemo, useRef, useState } from "./preact.js";
import { CODES, KINDS, beside, ordered, picked, summary } from "./table.js";
import { Data, KIND, live } from "./data.js";
import { readPlace, span, token, writePlace } from "./place.js";
import { Heat, Legend, outcomeClass } from "./heat.js";
import { Item, openMark } from "./item.js";
import { number, oneLine } from "./text.js";

const ROW = 48; // pixels of a flip in the list
const AT_ONCE = 50000; // cells whose drops are worked out without a word
const TYPING = 250; // milliseconds until what was typed is looked for in the texts
const TABLED = 50; // items of the map that the table has, besides its totals
const SORTS = [
  ["flips", "most flips first"],
  ["difficulty", "hardest first"],
  ["data", "by key"],
  ["differing", "differing items first"],
];
const data = new Data(token);

function App() {
  const [place, setPlace] = useState(readPlace);
  const [record, setRecord] = useState(null);
  const [fault, setFault] = useState("");
  const [panel, setPanel] = useState(null);
  const [theirs, setTheirs] = useState(null);
  const [version, setVersion] = useState(0);
  const [texts, setTexts] = useState({});
  const [notes, setNotes] = useState([]);
  const [marks, setMarks] = useState([]);
  const [wanted, setWanted] = useState(false);
  const [findings, setFindings] = useState({ drops: {} });
  const [found, setFound] = useState({});
  const [help, setHelp] = useState(false);
  const [, setSize] = useState("");
  const [hover, setHover] = useState(null);
  const search = useRef(null);

  const failed = (error) => setFault(String(error.message ?? error));

  function go(change, step = false) {
    setPlace((now) => {
      const next = { ...now, ...change };
      writePlace(next, step);
      return next;
    });
  }

  useEffect(() => {
    const back = () => setPlace(readPlace());
    const resized = () => setSize(`${innerWidth} × ${innerHeight}`);
    addEventListener("popstate", back);
    addEventListener("resize", resized);
    load();
    return () => {
      removeEventListener("popstate", back);
      removeEventListener("resize", resized);
    };
  }, []);

  async function load() {
    try {
      setRecord(await data.panels());
      setNotes(await data.kept("notes"));
      setMarks(await data.kept("marks"));
    } catch (error) {
      setFault(String(error.message ?? error));
    }
  }

  const at = record ? clamp(Number(place.panel) || 0, record.panels.length) : 0;
  const against =
    record && place.against !== "" && Number(place.against) !== at && record.panels[Number(place.against)]
      ? Number(place.against)
      : null;
  useEffect(() => {
    if (!record) return;
    const all = [data.panel(at), against === null ? null : data.panel(against)];
    Promise.all(all).then(
      ([one, two]) => {
        setPanel(one);
        setTheirs(two);
      },
      (error) => setFault(String(error.message ?? error)),
    );
  }, [record, at, against]);

  const shown = useRef([]);
  shown.current = [panel, theirs];
  useEffect(() => {
    if (!record) return;
    data.follow((event, sent) => {
      if (event === "reload") return load();
      for (const own of shown.current)
        if (own?.number === sent.panel) sent.places.forEach((cell, n) => (own.cells[cell] = sent.codes[n]));
      setVersion((count) => count + 1);
    }).catch(() => {});
  }, [record !== null]);

  const other = useMemo(() => panel && theirs && beside(panel, theirs), [panel, theirs, version]);
  const sort = place.sort === "differing" && !other ? "flips" : place.sort;
  const order = useMemo(() => panel && ordered(panel, sort, other), [panel, other, sort, version]);
  const placeOf = useMemo(() => {
    if (!order) return null;
    const places = new Uint32Array(order.length);
    order.forEach((row, n) => (places[row] = n));
    return places;
  }, [order]);
  const study = record?.panels[at].study;
  const large = record?.panels.reduce((sum, { items, columns }) => sum + items.length * columns.length, 0) > AT_ONCE;
  useEffect(() => {
    if (record && (wanted || !large)) data.findings(study).then(setFindings, () => {}); // a page without drops
  }, [record, study, wanted]);

  const sought = place.text.trim().toLowerCase();
  const seeking = panel && sought && `${panel.number}:${sought}`;
  useEffect(() => {
    if (!seeking) return;
    const look = () => data.found(panel, sought).then((hits) => setFound({ key: seeking, hits }), failed);
    const typing = setTimeout(look, TYPING);
    return () => clearTimeout(typing);
  }, [seeking]);

  const hits = found.key === seeking ? found.hits : null;
  const filter = panel && {
    hits,
    kinds: place.kinds.split(",").filter((kind) => KINDS.some(([name]) => name === kind)),
    recipe: place.recipe,
    tag: place.tag,
    text: place.text,
    rows: span(place.rows, panel.height - 1),
    columns: span(place.columns, panel.width - 1),
  };
  const list = useMemo(
    () => panel && picked(panel, order, filter, other),
    [panel, other, order, version, hits, place.kinds, place.recipe, place.tag, place.text, place.rows, place.columns],
  );

  const row = panel && place.item !== "" ? panel.row(place.item) : -1;
  const column = panel ? Math.max(0, panel.column(place.condition)) : 0;
  const open = place.open !== "" && row >= 0;
  const cursor = row >= 0 ? { place: placeOf[row], column } : null;
  const index = row >= 0 ? list.cells.indexOf(row * panel.width + column) : -1;

  const textKey = `${at}:${row}:${against}:${version}`;
  useEffect(() => {
    if (!open) return;
    let gone = false;
    const rowThere = theirs ? theirs.row(place.item) : -1;
    Promise.all([data.item(at, row), rowThere >= 0 ? data.item(against, rowThere) : null]).then(
      ([own, theirs]) => gone || setTexts({ key: textKey, own, theirs, rowThere }),
      (error) => gone || setFault(String(error.message ?? error)),
    );
    return () => (gone = true);
  }, [textKey, open]);

  function to(cell, opened) {
    const step = opened !== open;
    go(
      {
        item: panel.info.items[Math.floor(cell / panel.width)],
        condition: panel.names[cell % panel.width],
        open: opened ? "1" : "",
      },
      step,
    );
  }

  function next(step) {
    if (!list.cells.length) return;
    const from = index < 0 ? (step > 0 ? -1 : list.cells.length) : index;
    to(list.cells[clamp(from + step, list.cells.length)], open);
  }

  function moveCursor(down, right, brushing) {
    const now = cursor ?? { place: filter.rows?.[0] ?? 0, column: 0 };
    const there = clamp(cursor ? now.place + down : now.place, order.length);
    const across = clamp(cursor ? now.column + right : now.column, panel.width);
    const change = {};
    if (brushing) {
      const from = brush.current ?? now;
      brush.current = from;
      if (down || filter.rows) change.rows = low(from.place, there);
      if (right || filter.columns) change.columns = low(from.column, across);
    } else brush.current = null;
    go({ ...change, item: panel.info.items[order[there]], condition: panel.names[across] });
  }
  const brush = useRef(null);

  function turn(step) {
    const columns = texts.own ? texts.own.cells.map((cell) => cell.column) : [];
    const now = columns.indexOf(column);
    if (columns.length) go({ condition: panel.names[columns[clamp(now + step, columns.length)]] });
  }

  function escape() {
    if (help) return setHelp(false);
    if (open) return go({ open: "" }, true);
    brush.current = null;
    go({ rows: "", columns: "", kinds: "", recipe: "", tag: "", text: "" });
  }

  const keys = useRef(null);
  keys.current = (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !panel) return;
    const writing = /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName ?? "");
    if (writing) {
      if (event.key === "Escape") event.target.blur();
      return;
    }
    const pressed = event.target.closest?.("button, summary, a");
    const done = {
      j: () => next(1),
      k: () => next(-1),
      "/": () => search.current?.focus(),
      "?": () => setHelp(!help),
      s: () => go({ sort: SORTS[(SORTS.findIndex(([name]) => name === sort) + 1) % (other ? 4 : 3)][0] }),
      n: () => document.getElementById("note")?.focus(),
      m: openMark,
      c: () => go({ against: following(record.panels.length, at, against), sort: "differing" }),
      Escape: escape,
      Enter: () => !open && (row >= 0 ? go({ open: "1" }, true) : next(1)),
      ArrowLeft: () => (open ? turn(-1) : moveCursor(0, -1, event.shiftKey)),
      ArrowRight: () => (open ? turn(1) : moveCursor(0, 1, event.shiftKey)),
      ArrowUp: () => moveCursor(-1, 0, event.shiftKey),
      ArrowDown: () => moveCursor(1, 0, event.shiftKey),
    }[event.key];
    if (!done || (open && /^Arrow(Up|Down)$/.test(event.key))) return;
    if (pressed && event.key === "Enter") return;
    event.preventDefault();
    done();
  };
  useEffect(() => {
    const pressed = (event) => keys.current(event);
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  }, []);

  if (fault) return html`<main><p class="fault" role="alert">${oneLine(fault, 300)}</p></main>`;
  if (!panel || !list) return html`<p class="wait">Reading the answers …</p>`;

  const info = panel.info;
  const noteOf = (key) =>
    notes.find((n) => n.item === key && n.run === info.run && n.model === info.model && n.task === info.task)?.note ?? "";
  const { run, model, task } = info;
  const drops = (number) => findings.drops[number] ?? {};
  async function keep(own, item, note) {
    const about = { run, model, task, item };
    const key = JSON.stringify(Object.values(about));
    await data.keep("notes", { panel: at, row: own, note }, key, note && { ...about, note }).catch(failed);
    setNotes(await data.kept("notes"));
  }
  async function mark(own, item, cells, reading) {
    for (const { key, column } of cells) {
      const { recipe, draw, repeat } = info.columns[column];
      const about = { run, model, task, item, recipe, draw, repeat, key, reading };
      await data.keep("marks", { panel: at, row: own, column, reading }, key, reading !== "" && about).catch(failed);
    }
    setMarks(await data.kept("marks"));
  }

  const ready = texts.own && texts.key.startsWith(`${at}:${row}:`);
  return html`
    <${Head} record=${record} at=${at} against=${against} report=${findings.page} onReport=${live && large && !wanted && (() => setWanted(true))} said=${[["note", notes], ["mark", marks.filter((m) => m.run === run)]]} go=${go} onHelp=${() => setHelp(!help)} />
    ${help && html`<${Help} onClose=${() => setHelp(false)} />`}
    <main class=${open ? "open" : ""}>
      <section class="map" aria-label="Map of items and conditions">
        <${Bar} panel=${panel} other=${other} place=${place} sort=${sort} drops=${drops(at)} go=${go} search=${search} />
        <div class="maps">
          ${[panel, other].map(
            (own) => own && html`<div key=${own.number}>
              ${other && html`<h3>${oneLine(titleOf(own.info, record.panels))}</h3>`}
              <${Heat}
                panel=${own} order=${order} version=${version} cursor=${cursor} drops=${drops(own.number)}
                rows=${filter.rows} columns=${filter.columns} height=${mapHeight()}
                onHover=${setHover}
                onBrush=${(rows, columns) =>
                  go({ rows: rows ? rows.join("-") : "", columns: columns ? columns.join("-") : "" })}
                onOpen=${(own, across) => to(own * panel.width + across, true)}
              />
            </div>`,
          )}
        </div>
        <${Under} panel=${panel} order=${order} version=${version} cursor=${hover ?? cursor} drops=${drops(at)} filter=${filter} go=${go} />
      </section>
      ${open
        ? ready
          ? html`<${Item}
              panel=${panel} row=${row} column=${column} record=${texts.own}
              other=${other && {
                title: titleOf(other.info, record.panels),
                record: texts.key === textKey ? texts.theirs : undefined,
                names: theirs.names,
                codes: (there) => theirs.code(texts.rowThere, there),
              }}
              note=${noteOf(place.item)}
              onNote=${(text) => keep(row, place.item, text)}
              marks=${new Map(marks.map((m) => [m.key, m]))}
              onMark=${(cells, reading) => mark(row, place.item, cells, reading)}
              onColumn=${(there) => go({ condition: panel.names[there] })}
              onClose=${() => go({ open: "" }, true)}
            />`
          : html`<p class="wait">Reading the item …</p>`
        : html`<${Flips} panel=${panel} other=${other} list=${list} filter=${filter} seeking=${seeking && !hits} index=${index} go=${go} onOpen=${(cell) => to(cell, true)} />`}
    </main>
  `;
}

const clamp = (value, size) => Math.max(0, Math.min(size - 1, value));
const low = (a, b) => [Math.min(a, b), Math.max(a, b)].join("-");

function following(count, at, against) {
  const others = ["", ...Array.from({ length: count }, (_, n) => n).filter((n) => n !== at)];
  return String(others[(others.indexOf(against ?? "") + 1) % others.length]);
}

function mapHeight() {
  if (innerWidth < 760) return 420;
  return Math.max(300, innerHeight - 300);
}

// Models and tasks are named; what tells two panels of one name apart is named too.
function titleOf(info, panels) {
  const name = `${info.model} on ${info.task}`;
  const alike = panels.filter((p) => p.model === info.model && p.task === info.task);
  const more = [];
  if (info.part) more.push(info.part);
  if (alike.some((p) => p.scorer !== info.scorer)) more.push(info.scorer);
  if (alike.some((p) => p.run !== info.run)) more.push(`run ${info.run}`);
  if (info.simulated) more.push("simulated");
  return more.length ? `${name} (${more.join(", ")})` : name;
}

function Head({ record, at, against, report, onReport, said, go, onHelp }) {
  const options = record.panels.map((info, n) => [n, titleOf(info, record.panels)]);
  return html`<header class="head">
    <h1>falter <span class="muted">${oneLine(record.title, 60)}</span></h1>
    <${Choice} label="Panel" value=${at} options=${options}
      onChange=${(value) => go({ panel: value, item: "", open: "", rows: "", columns: "" }, true)} />
    ${record.panels.length > 1 &&
    html`<${Choice} label="Beside" value=${against ?? ""}
      options=${[["", "nothing"], ...options.filter(([n]) => n !== at)]}
      onChange=${(value) => go({ against: value, sort: value === "" ? "flips" : "differing" }, true)} />`}
    ${report && KIND !== "one" && html`<a href=${report} target="_blank" rel="noopener">Report</a>`}
    ${onReport && html`<button onClick=${onReport}>Make the report</button>`}
    <span class="space"></span>
    ${said.map(
      ([kind, rows]) =>
        rows.length > 0 &&
        html`<button onClick=${() => exportRows(rows, `falter-${kind}s.jsonl`)}>Export ${number(rows.length)} ${kind}${rows.length === 1 ? "" : "s"}</button>`,
    )}
    <button onClick=${onHelp} title="Keys (?)" aria-label="Keys">?</button>
  </header>`;
}

function Choice({ label, value, options, onChange }) {
  return html`<label class="choice"><span>${label}</span>
    <select value=${String(value)} onChange=${(event) => onChange(event.target.value)}>
      ${options.map(
        ([own, name]) => html`<option value=${String(own)} selected=${String(own) === String(value)}>${oneLine(name, 80)}</option>`,
      )}
    </select>
  </label>`;
}

function Bar({ panel, other, place, sort, drops, go, search }) {
  const recipes = [...new Set(panel.info.columns.filter((c) => !c.baseline).map((c) => c.recipe))];
  const tags = useMemo(() => [...new Set(panel.info.tags.flat())].sort().slice(0, 500), [panel]);
  return html`<div class="bar">
    <${Choice} label="Order" value=${sort} options=${other ? SORTS : SORTS.slice(0, 3)} onChange=${(value) => go({ sort: value })} />
    <${Choice} label="Recipe" value=${place.recipe} options=${[["", "all"], ...recipes.map((r) => [r, drops[r] ? `${r} ${drops[r]}` : r])]} onChange=${(value) => go({ recipe: value })} />
    ${tags.length > 0 &&
    html`<${Choice} label="Tag" value=${place.tag} options=${[["", "all"], ...tags.map((t) => [t, t])]} onChange=${(value) => go({ tag: value })} />`}
    <label class="choice"><span>Find</span>
      <input ref=${search} type="search" placeholder="in all texts … (/)" value=${place.text}
        onInput=${(event) => go({ text: event.target.value })} />
    </label>
  </div>`;
}

function Under({ panel, order, version, cursor, drops, filter, go }) {
  const totals = useMemo(() => summary(panel), [panel, version]);
  const counts = CODES.map((_, code) => totals.reduce((sum, t) => sum + t.codes[code], 0));
  const brushed = filter.rows || filter.columns;
  const [unfolded, setUnfolded] = useState(false); // a large table is made when it is asked for
  return html`<div class="under">
    <p class="status" role="status" aria-live="polite">${cursor
      ? `${oneLine(panel.info.items[order[cursor.place]], 60)} · ${oneLine(panel.names[cursor.column], 40)} · ${CODES[panel.code(order[cursor.place], cursor.column)]}`
      : "Click a cell to open its item; drag to select; arrows move."}
      ${brushed && html` <button class="link" onClick=${() => go({ rows: "", columns: "" })}>
        Clear the selection (${filter.rows ? `${number(filter.rows[1] - filter.rows[0] + 1)} items` : "all items"}, ${filter.columns ? filter.columns[1] - filter.columns[0] + 1 : panel.width} conditions)
      </button>`}
    </p>
    <${Legend} counts=${counts} />
    ${Object.keys(drops).length > 0 && html`<p class="aside">Above a recipe: its drop in points. The table has its interval.</p>`}
    <details class="tabled" open=${unfolded} onToggle=${(event) => setUnfolded(event.target.open)}>
      <summary>The map as a table</summary>
      ${unfolded && html`<${Totals} totals=${totals} columns=${panel.info.columns} drops=${drops} /><${Cells} panel=${panel} order=${order} filter=${filter} />`}
    </details>
  </div>`;
}

function Totals({ totals, columns, drops }) {
  const used = CODES.map((_, code) => code).filter((code) => totals.some((t) => t.codes[code]));
  return html`<div class="scroll" tabindex="0"><table><caption>Cells of each condition</caption>
    <thead><tr><th scope="col">Condition</th><th scope="col">drop, points</th><th scope="col" class="r">lost</th><th scope="col" class="r">gained</th>
      ${used.map((code) => html`<th scope="col" class="r">${CODES[code]}</th>`)}</tr></thead>
    <tbody>${totals.map(
      (t, n) => html`<tr><th scope="row"><bdi>${oneLine(t.name, 60)}</bdi></th><td>${drops[columns[n].recipe]}</td><td class="r">${number(t.lost)}</td><td class="r">${number(t.gained)}</td>
        ${used.map((code) => html`<td class="r">${number(t.codes[code])}</td>`)}</tr>`,
    )}</tbody></table></div>`;
}

function Cells({ panel, order, filter }) {
  const [top, last] = filter.rows ?? [0, order.length - 1];
  const rows = [...order.subarray(top, Math.min(last, top + TABLED - 1) + 1)];
  return html`<div class="scroll" tabindex="0"><table><caption>
      ${rows.length < order.length ? `The first ${number(rows.length)} items of the selection, in its order` : "Items in the order of the map"}
    </caption>
    <thead><tr><th scope="col">Item</th>${panel.names.map((name) => html`<th scope="col"><bdi>${oneLine(name, 40)}</bdi></th>`)}</tr></thead>
    <tbody>${rows.map(
      (row) => html`<tr><th scope="row"><bdi>${oneLine(panel.info.items[row], 60)}</bdi></th>
        ${panel.names.map((_, column) => html`<td>${CODES[panel.code(row, column)]}</td>`)}</tr>`,
    )}</tbody></table></div>`;
}

function Flips({ panel, other, list, filter, seeking, index, go, onOpen }) {
  const box = useRef(null);
  const [top, setTop] = useState(0);
  const [tall, setTall] = useState(600);
  const cells = list.cells;
  useEffect(() => {
    const watch = new ResizeObserver(() => setTall(box.current?.clientHeight || 600));
    watch.observe(box.current);
    return () => watch.disconnect();
  }, []);
  useEffect(() => {
    if (index < 0) return;
    const own = box.current;
    if (index * ROW < own.scrollTop) own.scrollTop = index * ROW;
    if ((index + 1) * ROW > own.scrollTop + own.clientHeight) own.scrollTop = (index + 1) * ROW - own.clientHeight;
  }, [index, cells]);
  const first = Math.max(0, Math.floor(top / ROW) - 5);
  const last = Math.min(cells.length, Math.ceil((top + tall) / ROW) + 5);
  function chip(name) {
    const kinds = filter.kinds.includes(name) ? filter.kinds.filter((k) => k !== name) : [...filter.kinds, name];
    go({ kinds: kinds.join(",") });
  }
  const lines = [];
  for (let n = first; n < last; n++)
    lines.push(html`<${Flip} key=${cells[n]} panel=${panel} other=${other} cell=${cells[n]} n=${n} current=${n === index} onOpen=${onOpen} />`);
  return html`<section class="flips" aria-label="Flips">
    <div class="chips" role="group" aria-label="Kinds of flips">
      ${KINDS.map(
        ([name, label, title]) =>
          (list.counts[name] > 0 || filter.kinds.includes(name)) &&
          html`<button class="chip" title=${title} aria-pressed=${filter.kinds.includes(name)} onClick=${() => chip(name)}>
            ${label} <b>${number(list.counts[name])}</b>
          </button>`,
      )}
    </div>
    <p class="count" role="status">${number(cells.length)} ${other ? "cells where the two differ" : cells.length === 1 ? "flip" : "flips"}${seeking ? " so far; looking into the texts …" : ""}</p>
    <div class="list" ref=${box} onScroll=${(event) => setTop(event.target.scrollTop)} role="listbox" tabindex="0"
      aria-label="Flips" aria-activedescendant=${index >= first && index < last ? `flip-${index}` : undefined}>
      <div class="tall" style=${{ height: `${cells.length * ROW}px` }}>
        <div style=${{ transform: `translateY(${first * ROW}px)` }}>${lines}</div>
      </div>
      ${cells.length === 0 && html`<p class="aside">Nothing like this. Esc clears what was chosen.</p>`}
    </div>
  </section>`;
}

function Flip({ panel, other, cell, n, current, onOpen }) {
  const row = Math.floor(cell / panel.width);
  const column = cell % panel.width;
  const before = other ? other.code(row, column) : panel.code(row, panel.base);
  const now = panel.code(row, column);
  const pair = other ? [now, before] : [before, now];
  return html`<div class="flip" id=${`flip-${n}`} role="option" aria-selected=${current} onClick=${() => onOpen(cell)}>
    <span class=${"swatch " + outcomeClass(pair[0])}></span><span class=${"swatch " + outcomeClass(pair[1])}></span>
    <bdi class="key">${oneLine(panel.info.items[row], 80)}</bdi>
    <bdi class="under-what">${oneLine(panel.names[column], 60)}</bdi>
    <span class="change">${CODES[pair[0]]} ${other ? "|" : "→"} ${CODES[pair[1]]}</span>
    <bdi class="text">${oneLine(panel.info.texts[row])}</bdi>
  </div>`;
}

function Help({ onClose }) {
  const rows = [
    ["j, k", "next, previous flip"],
    ["Enter", "open the item"],
    ["← → ↑ ↓", "move on the map; in an item ← → change the condition"],
    ["Shift + arrows, drag", "select items and conditions"],
    ["/", "look for a text"],
    ["s", "another order"],
    ["c", "put another model or run beside"],
    ["n", "write a note on the item"],
    ["m", "mark the reply as misread"],
    ["Esc", "back; then clear what was chosen"],
    ["?", "these keys"],
  ];
  return html`<div class="help" role="dialog" aria-label="Keys">
    <table><tbody>${rows.map(([key, what]) => html`<tr><th scope="row"><kbd>${key}</kbd></th><td>${what}</td></tr>`)}</tbody></table>
    <button onClick=${onClose}>Close (Esc)</button>
  </div>`;
}

function exportRows(rows, name) {
  const lines = rows.map((row) => JSON.stringify(row) + "\n");
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob(lines, { type: "application/jsonl" }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

document.getElementById("page").textContent = "";
render(html`<${App} />`, document.getElementById("page"));

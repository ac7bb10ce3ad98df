// One item: the prompt with its edits, and the answers of all variants beside one another.
import { html, useEffect, useRef, useState } from "./preact.js";
import { CODES } from "./table.js";
import { Edits, Text, number, oneLine, readingIn } from "./text.js";
import { outcomeClass } from "./heat.js";

export function Item({ panel, row, column, record, other, note, marks, onColumn, onNote, onMark, onClose }) {
  const cells = new Map(record.cells.map((cell) => [cell.column, cell]));
  const current = cells.get(column) ?? record.cells[0];
  if (!current) return html`<p>Nothing was asked about this item.</p>`;
  const edited = current.edits.some(([kind]) => kind !== "same");
  return html`<article class="item" aria-label="Item">
    <header>
      <button class="back" onClick=${onClose} title="Back to the list (Esc)">← List</button>
      <h2><bdi>${oneLine(record.key)}</bdi></h2>
      ${record.tags.map((tag) => html`<span class="tag"><bdi>${oneLine(tag, 40)}</bdi></span>`)}
    </header>
    ${record.expected &&
    html`<p class="expected"><span class="label">Expected</span> <${Text} text=${record.expected} /></p>`}
    <div class="variants" role="group" aria-label="Conditions">
      ${record.cells.map(
        (cell) => html`<button
          key=${cell.column}
          class=${"variant " + outcomeClass(panel.code(row, cell.column))}
          aria-pressed=${cell.column === current.column}
          title=${CODES[panel.code(row, cell.column)]}
          onClick=${() => onColumn(cell.column)}
        ><i></i>${oneLine(panel.names[cell.column], 40)}</button>`,
      )}
    </div>
    <section class="asked">
      <h3>The prompt under ${oneLine(panel.names[current.column], 60)}</h3>
      ${current.status === "unchanged" && html`<p class="aside">The recipe changed nothing here.</p>`}
      ${current.status === "not_applicable" && html`<p class="aside">The recipe does not apply to this item.</p>`}
      ${current.status === "no_rewrite" && html`<p class="aside">There is no rewrite of this item.</p>`}
      <div class="prompt" key=${current.column}><${Edits} edits=${current.edits} /></div>
      ${!edited && current.status === "changed" && html`<p class="aside">What changed is not in the text: settings, demonstrations or a repeat.</p>`}
      ${current.expected !== record.expected &&
      html`<p class="aside">Expected here: <${Text} text=${current.expected} /></p>`}
    </section>
    <${Answers} panel=${panel} row=${row} record=${record} current=${current} marks=${marks} onColumn=${onColumn} onMark=${onMark} />
    ${other && html`<${Other} ...${other} name=${panel.names[current.column]} />`}
    <${Again} asked=${panel.info.asked} cell=${current} />
    <${Note} note=${note} onNote=${onNote} key=${record.key} />
  </article>`;
}

// Replies that are equal to the letter stand together, that to the clean prompt first.
function grouped(panel, record) {
  const groups = new Map();
  for (const cell of record.cells) {
    const key = JSON.stringify([cell.answer ?? null, cell.reason, cell.outcome, cell.value, cell.read, cell.tier]);
    if (!groups.has(key)) groups.set(key, []);
    groups.get(key).push(cell);
  }
  const first = (group) => (group.some((cell) => cell.column === panel.base) ? 0 : 1);
  return [...groups.values()].sort((a, b) => first(a) - first(b) || b.length - a.length);
}

function Answers({ panel, row, record, current, marks, onColumn, onMark }) {
  const groups = grouped(panel, record);
  return html`<section class="answers">
    <h3>${groups.length === 1 ? "One answer" : `${number(groups.length)} different answers`} from ${number(record.cells.length)} prompts</h3>
    <div class="columns">
      ${groups.map(
        (group) => html`<div
          key=${group[0].column}
          class="answer"
          data-current=${group.includes(current)}
        >
          <div class="of">
            ${group.map(
              (cell) => html`<button
                class="link"
                aria-pressed=${cell === current}
                onClick=${() => onColumn(cell.column)}
              ><bdi>${oneLine(panel.names[cell.column], 40)}</bdi></button>`,
            )}
            ${group.length > 1 && html`<b class="times">× ${group.length}</b>`}
          </div>
          <${Reply} cell=${shownOf(group, current)} code=${codeOf(panel, row, group)} />
          <${Misread} cell=${shownOf(group, current)} group=${group} marks=${marks} onMark=${onMark} key=${shownOf(group, current).key} />
        </div>`,
      )}
    </div>
  </section>`;
}

const shownOf = (group, current) => (group.includes(current) ? current : group[0]);

// Equal replies are told by the first that is no "unchanged", which is no verdict.
function codeOf(panel, row, group) {
  const codes = group.map((cell) => panel.code(row, cell.column));
  return codes.find((code) => code < 7) ?? codes[0];
}

function Reply({ cell, code }) {
  const place = readingIn(cell.answer, cell.read);
  const graded = cell.value !== null && cell.value !== 0 && cell.value !== 1;
  return html`<p class="verdict">
      <span class=${"swatch " + outcomeClass(code)}></span>${CODES[code]}
      ${graded && html` <span class="muted">score ${cell.value.toFixed(3)}</span>`}
      ${cell.tier && html` <span class="muted">${cell.tier}</span>`}
    </p>
    ${cell.answer
      ? html`<div class="reply"><${Text} text=${cell.answer} mark=${place} /></div>`
      : html`<p class="aside">${cell.outcome === "missing" ? "Not answered yet." : "The reply is empty."}</p>`}
    ${cell.read && !place && html`<p class="aside">read as <${Text} text=${cell.read} /></p>`}
    ${cell.reason && html`<p class="aside"><${Text} text=${cell.reason} /></p>`}
    ${cell.second && html`<p class="aside">${secondOf(cell.second)}${cell.second[3] && cell.second[3] !== cell.read && cell.second[3] !== cell.answer.trim() && html` <${Text} text=${cell.second[3]} />`}</p>`}
    ${cell.reasoning &&
    html`<details><summary>Reasoning (${number(cell.reasoning.length)} characters)</summary>
      <div class="reply"><${Text} text=${cell.reasoning} /></div></details>`}
    ${cell.options &&
    html`<details><summary>Log-likelihoods</summary><table class="options"><tbody>
      ${cell.options.map(([text, value]) => html`<tr><td><${Text} text=${text} /></td><td class="r">${value === null ? "–" : value.toFixed(2)}</td></tr>`)}
    </tbody></table></details>`}
    <p class="meta">${meta(cell)}</p>`;
}

// What the more lenient second reader makes of the reply.
function secondOf([name, outcome, value]) {
  const judged = value === null ? outcome : value === 1 ? "right" : value === 0 ? "wrong" : `score ${value.toFixed(3)}`;
  return `second reader ${name}: ${judged}`;
}

// A person's reading of a reply, for all conditions with this reply and the same possible answers.
function Misread({ cell, group, marks, onMark }) {
  const mark = marks.get(cell.key);
  const [text, setText] = useState(mark?.reading ?? "");
  if (!cell.readings) return null;
  const own = JSON.stringify(cell.readings);
  const cells = group.filter((other) => JSON.stringify(other.readings) === own);
  const say = (reading) => onMark(cells, reading);
  return html`<details class="misread">
    <summary>${mark ? html`Read by you: <${Text} text=${mark.reading ?? "no answer"} />` : "Misread?"}</summary>
    ${cell.readings.length
      ? html`<select aria-label="What the reply answers" value=${text} onChange=${(event) => setText(event.target.value)}>
          <option value="">choose …</option>
          ${cell.readings.map(([value, line]) => html`<option value=${value} selected=${value === text}>${oneLine(line, 80)}</option>`)}
        </select>`
      : html`<input aria-label="What the reply answers" maxlength="1000" value=${text} onInput=${(event) => setText(event.target.value)} />`}
    <button disabled=${!text.trim()} onClick=${() => say(text.trim())}>Mark</button>
    <button onClick=${() => say(null)}>No answer</button>
    ${mark && html`<button onClick=${() => say("")}>Take back</button>`}
  </details>`;
}

export function openMark() {
  const box = document.querySelector(".answer[data-current=true] .misread");
  if (!box) return;
  box.open = true;
  box.querySelector("select, input").focus();
}

function meta(cell) {
  if (!cell.tokens) return "";
  const [sent, written] = cell.tokens;
  return oneLine(
    [
      cell.finish && `finish: ${cell.finish}`,
      sent + written > 0 && `${number(sent)} → ${number(written)} tokens`,
      cell.latency > 0 && `${cell.latency.toFixed(2)} s`,
      cell.served_by && `served by ${cell.served_by}`,
    ]
      .filter(Boolean)
      .join(" · "),
    240,
  );
}

// The same item and condition in the panel beside this one.
function Other({ title, record, names, codes, name }) {
  if (record === undefined) return html`<p class="wait">Reading the item …</p>`;
  const cell = record && record.cells.find((own) => names[own.column] === name);
  return html`<section class="other">
    <h3>${oneLine(title)}</h3>
    ${cell
      ? html`<div class="answer"><${Reply} cell=${cell} code=${codes(cell.column)} /></div>`
      : html`<p class="aside">It has no such item under this condition.</p>`}
  </section>`;
}

function Again({ asked, cell }) {
  if (!cell.messages.length) return null;
  return html`<section class="again">
    <${Command} title="Ask again with curl" text=${curl(asked, cell)} />
    <${Command} title="Ask again in Python" text=${python(asked, cell)} />
  </section>`;
}

function Command({ title, text }) {
  const [copied, setCopied] = useState(false);
  async function copy() {
    try {
      await navigator.clipboard.writeText(text);
      setCopied(true);
    } catch {
      setCopied(false); // the text below can be selected
    }
  }
  return html`<details class="command">
    <summary>${title}</summary>
    <button onClick=${copy}>${copied ? "Copied" : "Copy"}</button>
    <pre tabindex="0">${text.length > 20000 ? text.slice(0, 20000) + "…" : text}</pre>
  </details>`;
}

// Nothing but ASCII: no letter of a prompt can end a line of the command or turn its direction.
function ascii(value) {
  return JSON.stringify(value, null, 1).replace(
    /[\u007f-\uffff]/g,
    (c) => "\\u" + c.charCodeAt(0).toString(16).padStart(4, "0"),
  );
}

function bodyOf(asked, cell) {
  const messages = cell.messages.map(([role, content]) => ({ role, content }));
  return ascii({ model: asked.name, messages, ...asked.sampling });
}

const url = (asked) => (asked.url ?? "https://api.openai.com/v1").replace(/\/+$/, "") + "/chat/completions";
// A key of OpenAI's goes to OpenAI and to this machine alone: the address is the store's.
const OWN = /^https?:\/\/(api\.openai\.com|localhost|127\.0\.0\.1|\[::1\])(:\d+)?(\/|$)/;
const keyOf = (asked) => (OWN.test(url(asked)) ? "OPENAI_API_KEY" : "API_KEY");
const quoted = (text) => "'" + text.replace(/'/g, "'\\''") + "'";

export function curl(asked, cell) {
  return [
    `curl ${quoted(url(asked))} \\`,
    `  -H "Authorization: Bearer $${keyOf(asked)}" -H 'Content-Type: application/json' \\`,
    `  -d ${quoted(bodyOf(asked, cell))}`,
  ].join("\n");
}

export function python(asked, cell) {
  return [
    "import json, os, urllib.request",
    "",
    `body = json.loads(${ascii(bodyOf(asked, cell))})`,
    "request = urllib.request.Request(",
    `    ${ascii(url(asked))},`,
    "    json.dumps(body).encode(),",
    "    {",
    `        "Authorization": "Bearer " + os.environ.get("${keyOf(asked)}", ""),`,
    '        "Content-Type": "application/json",',
    "    },",
    ")",
    'print(json.load(urllib.request.urlopen(request))["choices"][0]["message"]["content"])',
  ].join("\n");
}

function Note({ note, onNote }) {
  const [text, setText] = useState(note);
  const last = useRef({ note, text });
  last.current = { note, text };
  useEffect(() => () => last.current.text !== last.current.note && onNote(last.current.text), []);
  return html`<section class="note">
    <label>Note on this item
      <textarea
        id="note"
        rows="2"
        value=${text}
        onInput=${(event) => setText(event.target.value)}
        onBlur=${() => text !== note && onNote(text)}
      ></textarea>
    </label>
  </section>`;
}

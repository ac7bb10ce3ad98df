// Texts from outside, shown as text: nothing in them acts, hides, reorders or widens the page.
import { h, html, useState } from "./preact.js";

const SHOWN = 4000; // characters of a text before it has to be asked for
const SLACK = 200;

// Controls but tab and newline, characters without width, and those that turn the direction.
const HIDDEN =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u034f\u061c\u070f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff0-\uffff]/g;

export function unhidden(text) {
  return text.replace(HIDDEN, (c) => "⟨" + pointOf(c) + "⟩");
}

export function oneLine(text, limit = 120) {
  const line = unhidden(text.slice(0, limit)).replace(/\n/g, "⏎").replace(/\t/g, "⇥");
  return text.length > limit ? line + "…" : line;
}

function pointOf(c) {
  return "U+" + c.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0");
}

function pieces(text) {
  const out = [];
  let at = 0;
  for (const match of text.matchAll(HIDDEN)) {
    if (match.index > at) out.push(text.slice(at, match.index));
    out.push(h("span", { class: "ctl" }, pointOf(match[0])));
    at = match.index + 1;
  }
  if (at < text.length) out.push(text.slice(at));
  return out;
}

// A text, clipped until its reader asks for the rest; `mark` is a stretch [from, to] to mark.
export function Text({ text, mark }) {
  const [whole, setWhole] = useState(false);
  const value = String(text ?? "");
  const clipped = !whole && value.length > SHOWN + SLACK;
  const end = clipped ? SHOWN : value.length;
  const parts = [];
  if (mark && mark[0] < end) {
    const stop = Math.min(mark[1], end);
    parts.push(...pieces(value.slice(0, mark[0])));
    parts.push(h("mark", { class: "read" }, ...pieces(value.slice(mark[0], stop))));
    parts.push(...pieces(value.slice(stop, end)));
  } else parts.push(...pieces(value.slice(0, end)));
  return html`<span class="text" dir="auto">${parts}</span>${clipped &&
  html` <button class="link" onClick=${() => setWhole(true)}>
    … ${number(value.length - end)} more characters
  </button>`}`;
}

// Stretches that stayed or were edited: what went is struck through, what came is marked.
export function Edits({ edits }) {
  let left = SHOWN * 2;
  const out = [];
  for (const [kind, before, after] of edits) {
    if (left <= 0) break;
    if (kind === "same") {
      out.push(html`<${Text} text=${after} />`);
      left -= Math.min(after.length, SHOWN);
      continue;
    }
    if (before) out.push(html`<del><${Text} text=${spaced(before)} /></del>`);
    if (after) out.push(html`<ins><${Text} text=${spaced(after)} /></ins>`);
    left -= Math.min(before.length + after.length, SHOWN);
  }
  if (left <= 0) out.push(html`<span class="ctl">… more of this prompt is not shown</span>`);
  return out;
}

// Spaces and line breaks of an edit have to be seen.
function spaced(text) {
  return text
    .replace(/\n/g, "⏎\n")
    .replace(/\t/g, "⇥\t")
    .replace(/^ +| +$| {2,}/g, (s) => "·".repeat(s.length));
}

export function number(value) {
  return value.toLocaleString("en-US");
}

// Where in a reply the scorer's reading stands: the last place, as whole words if there is one.
export function readingIn(answer, read) {
  if (!read || !answer || read.length > answer.length) return null;
  const own = answer.toLowerCase();
  const sought = read.toLowerCase();
  if (own.length !== answer.length) return null; // some letters change their length
  let at = own.lastIndexOf(sought);
  let best = at;
  while (at >= 0) {
    const around = (own[at - 1] ?? " ") + (own[at + sought.length] ?? " ");
    if (!/[\p{L}\p{N}]/u.test(around)) {
      best = at;
      break;
    }
    at = at > 0 ? own.lastIndexOf(sought, at - 1) : -1;
  }
  return best < 0 ? null : [best, best + sought.length];
}

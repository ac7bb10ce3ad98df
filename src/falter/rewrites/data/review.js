
"use strict";
const DATA = JSON.parse(document.getElementById("data").textContent);
const ROWS = DATA.rows;
const STORE = "falter-review-" + DATA.sheet;
const COLUMNS = ["row", "perturbation", "source", "rewrite", "decision", "edited", "rating", "comment", "rater"];
const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g;
const at = (id) => document.getElementById(id);
const decisions = [...document.querySelectorAll("[data-decision]")];
const ratings = [...document.querySelectorAll("[data-rating]")];
let drafts = {};
let rater = "";
let here = 0;

function load() {
  try {
    const kept = JSON.parse(localStorage.getItem(STORE) || "{}");
    drafts = kept.drafts || {};
    rater = kept.rater || "";
    here = Math.min(Math.max(0, kept.here | 0), ROWS.length - 1);
  } catch (error) {
    drafts = {};
  }
}

function save() {
  try {
    localStorage.setItem(STORE, JSON.stringify({drafts, rater, here}));
  } catch (error) {
    at("note").textContent = "This browser keeps nothing: download the CSV before you close the page.";
  }
}

function joins(c, before) {
  return c === "\u200d" && before >= "\ud800" && before <= "\udfff"; // inside an emoji
}

function shown(text) {
  return text.replace(HIDDEN, (c, place) => joins(c, text[place - 1]) ? c : "\u27e8U+" + c.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0") + "\u27e9");
}

function draft() {
  const name = ROWS[here].row;
  return drafts[name] || (drafts[name] = {decision: "", edited: "", rating: "", comment: ""});
}

function reviewed(row) {
  const found = drafts[row.row];
  const decided = found && (found.decision === "edit" ? found.edited.trim() : found.decision);
  return Boolean(decided || (found && found.rating));
}

function draw() {
  if (!ROWS.length) {
    at("count").textContent = "There is nothing to review.";
    return;
  }
  const row = ROWS[here];
  const found = drafts[row.row] || {decision: "", edited: "", rating: "", comment: ""};
  at("place").textContent = (here + 1) + " of " + ROWS.length;
  at("perturbation").textContent = row.perturbation;
  at("source").textContent = shown(row.source);
  at("rewrite").textContent = shown(row.rewrite) || "(none: write one, or reject)";
  at("flags").hidden = !(row.flags && row.flags.length);
  at("flags").textContent = row.flags ? "Check: " + row.flags.join("; ") : "";
  for (const b of decisions) b.setAttribute("aria-pressed", String(b.dataset.decision === found.decision));
  for (const b of ratings) b.setAttribute("aria-pressed", String(b.dataset.rating === found.rating));
  decisions[0].disabled = !row.rewrite;
  at("editing").hidden = found.decision !== "edit";
  at("edited").value = found.edited;
  at("comment").value = found.comment;
  at("goto").value = here + 1;
  count();
}

function count() {
  const done = ROWS.filter(reviewed).length;
  at("count").textContent = done + " of " + ROWS.length + " reviewed";
  at("progress").max = Math.max(1, ROWS.length);
  at("progress").value = done;
}

function go(place) {
  here = Math.min(Math.max(0, place), ROWS.length - 1);
  save();
  draw();
}

function nextOpen() {
  for (let n = 1; n <= ROWS.length; n++) {
    const place = (here + n) % ROWS.length;
    if (!reviewed(ROWS[place])) return go(place);
  }
}

function decide(value) {
  if (value === "accept" && !ROWS[here].rewrite) return;
  const found = draft();
  found.decision = found.decision === value ? "" : value;
  if (found.decision === "edit" && !found.edited) found.edited = ROWS[here].rewrite;
  save();
  draw();
  if (found.decision === "edit") at("edited").focus();
}

function rate(value) {
  const found = draft();
  found.rating = found.rating === value ? "" : value;
  save();
  draw();
}

function cell(text) {
  const safe = /^'*[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]/.test(text) ? "'" + text : text;
  return '"' + safe.replace(/"/g, '""') + '"';
}

function csv() {
  const lines = [COLUMNS.join(",")];
  for (const row of ROWS) {
    const d = drafts[row.row] || {decision: "", edited: "", rating: "", comment: ""};
    const edited = d.decision === "edit" ? d.edited.trim() : "";
    const decision = d.decision === "edit" && !edited ? "" : d.decision;
    const any = decision || d.rating || d.comment;
    lines.push([row.row, row.perturbation, row.source, row.rewrite, decision, edited, d.rating, d.comment, any ? rater.trim() : ""].map(cell).join(","));
  }
  return "\ufeff" + lines.join("\r\n") + "\r\n";
}

function download() {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([csv()], {type: "text/csv;charset=utf-8"}));
  link.download = "review-" + DATA.sheet + "-" + (rater.trim().replace(/[^\w-]+/g, "_") || "rater") + ".csv";
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

for (const b of decisions) b.addEventListener("click", () => decide(b.dataset.decision));
for (const b of ratings) b.addEventListener("click", () => rate(b.dataset.rating));
at("edited").addEventListener("input", (e) => { draft().edited = e.target.value; save(); });
at("comment").addEventListener("input", (e) => { draft().comment = e.target.value; save(); });
at("rater").addEventListener("input", (e) => { rater = e.target.value; save(); });
at("previous").addEventListener("click", () => go(here - 1));
at("next").addEventListener("click", () => go(here + 1));
at("open").addEventListener("click", nextOpen);
at("goto").addEventListener("change", (e) => go((e.target.value | 0) - 1));
at("download").addEventListener("click", download);
document.addEventListener("keydown", (e) => {
  if (!ROWS.length || e.ctrlKey || e.metaKey || e.altKey) return;
  if (/^(INPUT|TEXTAREA)$/.test(e.target.tagName)) {
    if (e.key === "Escape") e.target.blur();
    return;
  }
  const keys = {a: () => decide("accept"), r: () => decide("reject"), e: () => decide("edit"), n: nextOpen,
    ArrowRight: () => go(here + 1), j: () => go(here + 1), ArrowLeft: () => go(here - 1), k: () => go(here - 1)};
  const act = /^[1-5]$/.test(e.key) ? () => rate(e.key) : keys[e.key];
  if (act) { e.preventDefault(); act(); }
});
load();
at("rater").value = rater;
draw();

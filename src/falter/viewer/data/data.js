// Where the page's data come from: the server that gave it, files beside it, or the page itself.
import { Panel } from "./table.js";

export const KIND = document.querySelector('meta[name="falter-data"]').content;
const CHUNK = 256; // items in a piece of texts
const KEPT = 8; // pieces that stay unpacked

export const live = KIND === "live";

export class Data {
  constructor(token) {
    this.token = token;
    this.pieces = new Map();
    this.own = {};
  }

  async panels() {
    const record = live ? await this.json("api/panels") : await this.unpackedJson("panels");
    this.record = record;
    return record;
  }

  async panel(number) {
    const bytes = live
      ? new Uint8Array(await (await this.ask(`api/cells/${number}`)).arrayBuffer())
      : await this.unpacked(`cells-${number}`);
    return new Panel(number, this.record.panels[number], bytes);
  }

  async item(panel, row) {
    if (live) return this.json(`api/item/${panel}/${row}`);
    const piece = Math.floor(row / CHUNK);
    const name = `texts-${panel}-${String(piece).padStart(4, "0")}`;
    let texts = this.pieces.get(name);
    if (texts === undefined) {
      texts = this.unpackedJson(name);
      this.pieces.set(name, texts);
      if (this.pieces.size > KEPT) this.pieces.delete(this.pieces.keys().next().value);
    }
    return (await texts)[row % CHUNK];
  }

  // The drops of a study's panels, and where its report is.
  async findings(study) {
    return live ? this.json(`api/findings/${study}`) : this.record.findings[study];
  }

  // Ones where a text stands in a prompt, a reply or its reading; null if another is sought by now.
  async found(panel, text) {
    this.sought = text;
    await this.seeking?.catch(() => {}); // one at a time
    if (this.sought !== text) return null;
    this.seeking = live ? this.foundThere(panel, text) : this.foundHere(panel, text);
    return this.seeking;
  }

  async foundThere(panel, text) {
    const answer = await this.ask(`api/found/${panel.number}?text=${encodeURIComponent(text)}`);
    return new Uint8Array(await answer.arrayBuffer());
  }

  async foundHere(panel, text) {
    const hits = new Uint8Array(panel.cells.length);
    const has = (value) => value && String(value).toLowerCase().includes(text);
    for (let row = 0; row < panel.height; row++)
      for (const cell of (await this.item(panel.number, row)).cells) {
        const asked = cell.edits.map(([, , after]) => after).join("");
        if ([asked, cell.answer, cell.reasoning, cell.read].some(has))
          hits[row * panel.width + cell.column] = 1;
      }
    return hits;
  }

  async ask(path, options = {}) {
    const response = await fetch(path, {
      ...options,
      headers: { "X-Falter-Token": this.token },
      cache: "no-store",
    });
    if (!response.ok) throw new Error(await response.text());
    return response;
  }

  async json(path) {
    return (await this.ask(path)).json();
  }

  async unpackedJson(name) {
    return JSON.parse(new TextDecoder().decode(await this.unpacked(name)));
  }

  async unpacked(name) {
    const packed = await this.packed(name);
    if (packed[0] !== 0x1f || packed[1] !== 0x8b) return packed; // a host has unpacked it
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Uint8Array(await new Response(stream).arrayBuffer());
  }

  async packed(name) {
    if (KIND === "one") {
      const text = atob(document.getElementById(name).textContent.trim());
      return Uint8Array.from(text, (c) => c.charCodeAt(0));
    }
    if (location.protocol === "file:")
      throw new Error("This page needs a web server; open view.html, or put the folder on one.");
    const response = await fetch(`data/${name}.bin`);
    if (!response.ok) throw new Error(`${name}.bin is not there (${response.status})`);
    return new Uint8Array(await response.arrayBuffer());
  }

  // Calls `heard(event, data)` for whatever the server has to say, as long as the page is open.
  async follow(heard) {
    if (!live) return;
    const response = await this.ask("api/events");
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      rest += value;
      const events = rest.split("\n\n");
      rest = events.pop();
      for (const event of events) {
        const name = /^event: (.*)$/m.exec(event);
        const data = /^data: (.*)$/m.exec(event);
        if (name && data) heard(name[1], JSON.parse(data[1]));
      }
    }
  }

  // What a reader says: `notes` on items, `marks` on replies.
  async kept(kind) {
    if (live) return this.json(`api/${kind}`);
    return Object.values(JSON.parse(this.stored(kind) ?? "{}"));
  }

  // `sent` is for the server; without one, `row` stays in the browser under `key`, null takes it back.
  async keep(kind, sent, key, row) {
    if (live) {
      await this.ask(`api/${kind}`, { method: "PUT", body: JSON.stringify(sent) });
      return;
    }
    const rows = JSON.parse(this.stored(kind) ?? "{}");
    if (row) rows[key] = { ...row, at: Date.now() / 1000 };
    else delete rows[key];
    this.own[kind] = JSON.stringify(rows);
    try {
      localStorage.setItem(`falter-${kind}`, this.own[kind]);
    } catch {
      // a browser that stores nothing: what was said lives as long as the page
    }
  }

  stored(kind) {
    try {
      return localStorage.getItem(`falter-${kind}`) ?? this.own[kind];
    } catch {
      return this.own[kind];
    }
  }
}

// The heat map: items × conditions on a canvas. More items than pixels are averaged in colour.
import { html, useEffect, useLayoutEffect, useRef, useState } from "./preact.js";
import { CODES } from "./table.js";
import { oneLine } from "./text.js";

const HEAD = 146; // pixels for the names of conditions and their drops
const GUTTER = 96; // pixels for the names of items, where there is room for them
const TALLEST = 20; // pixels of a row
const WIDEST = 64; // pixels of a column
const LABELLED = 11;
const FLAT = ["missing", "right", "wrong", "unparsed", "truncated", "refused", "failed", "na", "same"];

export function Heat({ panel, order, version, cursor, drops, rows, columns, height, onHover, onBrush, onOpen }) {
  const canvas = useRef(null);
  const drawn = useRef({});
  const drag = useRef(null);
  const [width, setWidth] = useState(0);
  const theme = useTheme();
  const shape = layout(panel, order.length, width, height);

  useLayoutEffect(() => {
    const box = canvas.current.parentElement;
    const watch = new ResizeObserver(() => setWidth(Math.floor(box.clientWidth)));
    watch.observe(box);
    return () => watch.disconnect();
  }, []);

  useEffect(() => {
    if (!width) return;
    const key = [panel, order, version, theme, width, height];
    if (!same(drawn.current.key, key))
      drawn.current = { key, image: picture(panel, order, shape, colours()) };
    performance.mark("falter-map");
    const over = JSON.stringify([cursor, rows, columns, drops]);
    if (drawn.current.over === over) return;
    drawn.current.over = over;
    paint(canvas.current, drawn.current.image, shape, panel, order, { cursor, rows, columns, drops });
  });

  function at(event) {
    const box = canvas.current.getBoundingClientRect();
    const x = event.clientX - box.left - shape.left;
    const y = event.clientY - box.top - HEAD;
    const place = Math.floor((y / shape.tall) * order.length);
    const column = Math.floor((x / shape.wide) * panel.width);
    return [clamp(place, order.length), clamp(column, panel.width), y, x];
  }

  function down(event) {
    const [place, column, y] = at(event);
    drag.current = { place, column, y: event.clientY, x: event.clientX, head: y < 0 };
    canvas.current.setPointerCapture(event.pointerId);
  }

  function move(event) {
    const [place, column, y, x] = at(event);
    const from = drag.current;
    const inside = y >= 0 && y < shape.tall && x >= 0 && x < shape.wide;
    if (!from) return onHover(inside ? { place, column } : null);
    if (Math.abs(event.clientY - from.y) + Math.abs(event.clientX - from.x) < 5) return;
    from.moved = true;
    const across = from.head || Math.abs(event.clientX - from.x) > shape.wide / panel.width;
    onBrush(
      from.head ? null : [Math.min(from.place, place), Math.max(from.place, place)],
      across ? [Math.min(from.column, column), Math.max(from.column, column)] : null,
    );
  }

  function up(event) {
    const [place, column] = at(event);
    const from = drag.current;
    drag.current = null;
    if (from && !from.moved && !from.head) onOpen(order[place], column);
  }

  return html`<canvas
    ref=${canvas}
    class="heat"
    tabindex="0"
    role="img"
    aria-label=${`Heat map of ${order.length} items and ${panel.width} conditions; the same as a table stands below`}
    onPointerDown=${down}
    onPointerMove=${move}
    onPointerUp=${up}
    onPointerLeave=${() => onHover(null)}
  ></canvas>`;
}

function layout(panel, count, width, height) {
  const row = Math.min(TALLEST, Math.max(1, height - HEAD) / Math.max(1, count));
  const left = row >= LABELLED && width > 360 ? GUTTER : 0;
  const tall = Math.max(1, Math.round(row * count));
  const wide = Math.max(1, Math.min(width - left - 2, panel.width * WIDEST));
  return { row, left, tall, wide, width, height: tall + HEAD };
}

function clamp(value, size) {
  return Math.max(0, Math.min(size - 1, value));
}

function same(a, b) {
  return a !== undefined && a.every((value, n) => value === b[n]);
}

function useTheme() {
  const [dark, setDark] = useState(() => matchMedia("(prefers-color-scheme: dark)").matches);
  useEffect(() => {
    const query = matchMedia("(prefers-color-scheme: dark)");
    const changed = () => setDark(query.matches);
    query.addEventListener("change", changed);
    return () => query.removeEventListener("change", changed);
  }, []);
  return dark;
}

function colours() {
  const style = getComputedStyle(document.documentElement);
  return FLAT.map((name) => {
    const hex = style.getPropertyValue(`--o-${name}`).trim();
    return [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
  });
}

// A picture of one pixel a condition, and at most one line a device pixel.
function picture(panel, order, shape, palette) {
  const lines = Math.max(1, Math.min(order.length, Math.round(shape.tall * devicePixelRatio)));
  const { cells, width } = panel;
  const image = new OffscreenCanvas(width, lines);
  const context = image.getContext("2d");
  const data = context.createImageData(width, lines);
  const sums = new Uint32Array(width * 3);
  for (let line = 0, out = 0; line < lines; line++) {
    const first = Math.floor((line * order.length) / lines);
    const last = Math.max(first + 1, Math.floor(((line + 1) * order.length) / lines));
    sums.fill(0);
    for (let place = first; place < last; place++) {
      let at = order[place] * width;
      for (let sum = 0; sum < sums.length; sum += 3, at++) {
        const colour = palette[cells[at]];
        sums[sum] += colour[0];
        sums[sum + 1] += colour[1];
        sums[sum + 2] += colour[2];
      }
    }
    const count = last - first;
    for (let sum = 0; sum < sums.length; sum += 3, out += 4) {
      data.data[out] = sums[sum] / count;
      data.data[out + 1] = sums[sum + 1] / count;
      data.data[out + 2] = sums[sum + 2] / count;
      data.data[out + 3] = 255;
    }
  }
  context.putImageData(data, 0, 0);
  return image;
}

function paint(canvas, image, shape, panel, order, { cursor, rows, columns, drops }) {
  const scale = devicePixelRatio;
  canvas.width = Math.round(shape.width * scale);
  canvas.height = Math.round(shape.height * scale);
  canvas.style.width = shape.width + "px";
  canvas.style.height = shape.height + "px";
  const style = getComputedStyle(document.documentElement);
  const [ink, back, muted] = ["--ink", "--bg", "--muted"].map((name) => style.getPropertyValue(name));
  const context = canvas.getContext("2d");
  context.scale(scale, scale);
  context.imageSmoothingEnabled = false;
  context.drawImage(image, shape.left, HEAD, shape.wide, shape.tall);
  const cell = shape.wide / panel.width;
  context.fillStyle = back;
  if (cell >= 8) for (let n = 1; n < panel.width; n++) context.fillRect(shape.left + n * cell - 0.5, HEAD, 1, shape.tall);
  if (shape.row >= 8) for (let n = 1; n < order.length; n++) context.fillRect(shape.left, HEAD + n * shape.row - 0.5, shape.wide, 1);
  dim(context, shape, cell, back, rows, columns, order.length);
  context.font = `12px ${style.getPropertyValue("--sans")}`;
  context.textBaseline = "middle";
  names(context, shape, panel, order, cell, ink, muted, cursor, drops);
  if (cursor) {
    const high = Math.max(3, shape.row);
    context.lineWidth = 2;
    context.strokeStyle = ink;
    context.strokeRect(
      shape.left + cursor.column * cell, HEAD + cursor.place * shape.row - (high - shape.row) / 2,
      Math.max(3, cell), high,
    );
  }
}

// What is outside the brushed stretch steps back.
function dim(context, shape, cell, back, rows, columns) {
  if (!rows && !columns) return;
  context.globalAlpha = 0.72;
  context.fillStyle = back;
  const [top, bottom] = rows
    ? [rows[0] * shape.row, Math.max((rows[1] + 1) * shape.row, rows[0] * shape.row + 2)]
    : [0, shape.tall];
  const [left, right] = columns ? [columns[0] * cell, (columns[1] + 1) * cell] : [0, shape.wide];
  context.fillRect(shape.left, HEAD, shape.wide, top);
  context.fillRect(shape.left, HEAD + bottom, shape.wide, shape.tall - bottom);
  context.fillRect(shape.left, HEAD + top, left, bottom - top);
  context.fillRect(shape.left + right, HEAD + top, shape.wide - right, bottom - top);
  context.globalAlpha = 1;
}

function names(context, shape, panel, order, cell, ink, muted, cursor, drops) {
  const every = Math.max(1, Math.ceil(14 / cell));
  for (let n = 0; n < panel.width; n++) {
    const current = cursor?.column === n;
    if (n % every && !current) continue;
    if (!current && cursor && every > 1 && Math.abs(cursor.column - n) < every) continue;
    context.save();
    context.translate(shape.left + Math.max(8, (n + 0.5) * cell), HEAD - 6);
    context.rotate(-Math.PI / 2);
    context.fillStyle = current ? ink : muted;
    const drop = oneLine(drops[panel.info.columns[n].recipe]?.split(" ")[0] ?? "", 10);
    const room = HEAD - 10 - (drop && context.measureText(drop).width + 6);
    context.fillText(fitting(context, oneLine(panel.names[n], 40), room), 0, 0);
    context.textAlign = "right";
    context.fillText(drop, HEAD - 10, 0);
    context.restore();
  }
  if (!shape.left) return;
  for (let n = 0; n < order.length; n++) {
    context.fillStyle = cursor?.place === n ? ink : muted;
    const name = fitting(context, oneLine(panel.info.items[order[n]], 40), GUTTER - 8);
    context.fillText(name, 0, HEAD + (n + 0.5) * shape.row);
  }
}

// A name in so many pixels; what is left out is its middle, since names differ at both ends.
function fitting(context, text, width) {
  if (context.measureText(text).width <= width) return text;
  const end = text.length > 14 ? text.slice(-7) : "";
  let start = text.slice(0, text.length - end.length);
  while (start && context.measureText(start + "…" + end).width > width) start = start.slice(0, -1);
  return start + "…" + end;
}

export function Legend({ counts }) {
  return html`<ul class="legend">
    ${CODES.map(
      (name, code) =>
        counts[code] > 0 &&
        html`<li><span class=${"swatch o-" + FLAT[code]}></span>${name}</li>`,
    )}
  </ul>`;
}

export function outcomeClass(code) {
  return "o-" + FLAT[code];
}

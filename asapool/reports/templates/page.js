"use strict";
// Every .explorer: controls choose layers of one drawing; the node under the pointer or the focus shows its numbers.
// Every .figure can be saved as SVG or PNG. Tables wider than the screen get a hint to scroll.
const touch = matchMedia("(pointer: coarse)").matches;
for (const root of document.querySelectorAll(".explorer")) explore(root);
for (const figure of document.querySelectorAll(".figure")) for (const button of figure.querySelectorAll("[data-save]"))
  button.addEventListener("click", () => save(figure, button.dataset.save));
for (const root of document.querySelectorAll("[data-sortable]")) sortable(root);
hintAtScrolling();

// A table of substructures: every row is a tbody; headings sort, the search and the boxes above filter.
function sortable(root) {
  const table = root.querySelector("table"), rows = [...table.querySelectorAll("[data-row]")], count = root.querySelector("[data-count]");
  const search = root.querySelector("[data-search]"), supports = root.querySelector("select[data-supports]"), variants = root.querySelector("[data-variants]");
  let by = "", down = true;
  for (const button of table.querySelectorAll("[data-by]")) button.addEventListener("click", () => {
    down = by === button.dataset.by ? !down : button.dataset.by !== "p";
    by = button.dataset.by;
    for (const head of table.querySelectorAll("thead th")) head.removeAttribute("aria-sort");
    button.closest("th").setAttribute("aria-sort", down ? "descending" : "ascending");
    const value = (row) => Number(row.dataset[by]);
    table.append(...[...rows].sort((a, b) => (down ? -1 : 1) * (value(a) - value(b))));
  });
  const choose = () => {
    const words = search?.value.trim().toLowerCase() ?? "", name = supports?.value ?? "";
    let shown = 0;
    for (const row of rows) {
      const hit = (!words || row.dataset.name.toLowerCase().includes(words)) && (!name || row.dataset.supports === name)
        && (variants?.checked || words || !("variant" in row.dataset));
      row.toggleAttribute("hidden", !hit);
      shown += hit ? 1 : 0;
    }
    if (count) count.textContent = `${shown} of ${rows.length}`;
  };
  for (const control of [search, supports, variants]) control?.addEventListener("input", choose);
  choose();
}

function explore(root) {
  const data = JSON.parse(root.querySelector('script[type="application/json"]').textContent);
  const svg = root.querySelector("svg.graph"), selected = root.querySelector("[data-selected]");
  const meaning = root.querySelector("[data-meaning]"), spot = svg.querySelector("[data-spot]");
  const hits = [...svg.querySelectorAll("[data-node]")];
  let node = null;

  const chosen = (mark, otherwise) => root.querySelector(`[${mark}]:checked`)?.value ?? otherwise;
  const level = () => Number(chosen("data-level", 0));
  const view = () => chosen("data-view", "");
  const ticked = (mark) => root.querySelector(`[${mark}]`)?.checked ?? false;
  const digits = (v) => v.toFixed(data.digits);

  function draw() {
    const clusters = view() === "clusters";
    for (const g of svg.querySelectorAll("[data-layer]")) {
      const layer = g.dataset.layer, here = !g.dataset.at || Number(g.dataset.at) === level();
      const wanted = layer === "links" ? clusters && ticked("data-links")
        : layer === "badges" ? clusters && ticked("data-numbers")
        : layer === "numbers" ? ticked("data-numbers")
        : layer === "truth" ? ticked("data-truth") : layer === view();
      g.toggleAttribute("hidden", !(here && wanted));
    }
    root.querySelector("[data-links]")?.closest("label").toggleAttribute("hidden", !clusters);
    root.querySelector("[data-levels]")?.toggleAttribute("hidden", !clusters);
    for (const scale of root.querySelectorAll("[data-scale]")) scale.toggleAttribute("hidden", scale.dataset.scale !== view());
    meaning.textContent = data.meaning[view()] ?? "";
    fit();
    describe();
  }

  function describe() {
    const at = view() === "clusters" && level() ? data.levels[level() - 1] : null;
    spot.replaceChildren();
    const home = node === null || !at ? -1 : at.home[node];
    for (const area of svg.querySelectorAll("[data-cluster]"))
      area.classList.toggle("dim", home >= 0 && Number(area.dataset.cluster) !== home);
    if (node === null) {
      const how = touch ? "Tap a node to see its numbers." : "Hover over a node, or focus the drawing and use the arrow keys.";
      selected.replaceChildren(...strongest(at), make("p", "hint", how));
      return;
    }
    const parts = [make("h3", "", data.names[node])];
    const kinds = Object.entries(data.importance);
    if (kinds.length) {
      parts.push(make("h4", "", data.about));
      parts.push(list(kinds.map(([kind, values]) => [kind, data.effects[kind] ? data.effects[kind][node] : digits(values[node])])));
    }
    if (at) {
      const [count, shares] = at.nodes[node];
      parts.push(make("h4", "", count ? `In ${count} ${count === 1 ? "cluster" : "clusters"} of level ${level()}`
        : `In no kept cluster of level ${level()}`));
      const rows = shares.slice(0, 5).map(([k, share]) =>
        [`${k} around ${data.names[at.medoid[k]]}`, digits(share), `fitness ${digits(at.fitness[k])}`, at.colour[k]]);
      parts.push(list(rows, count - rows.length));
      if (home >= 0) {
        const [size, members] = at.clusters[home];
        parts.push(make("h4", "", `Cluster ${home} around ${data.names[at.medoid[home]]}, fitness ${digits(at.fitness[home])}`));
        parts.push(list(members.map(([v, share]) => [data.names[v], digits(share), "", at.colour[home]]), size - members.length));
        const top = Math.max(...members.map(([, share]) => share), 1e-12);
        for (const [v, share] of members) ring(v, at.colour[home], share / top);
      }
    }
    selected.replaceChildren(...parts);
  }

  // while no node is selected the panel shows the fittest clusters, or the most important nodes
  function strongest(at) {
    const first = (values) => values.map((v, k) => [v, k]).sort((a, b) => Math.abs(b[0]) - Math.abs(a[0])).slice(0, 5);
    if (at) return [make("h4", "", "Fittest clusters"),
      list(first(at.fitness).map(([v, k]) => [`${k} around ${data.names[at.medoid[k]]}`, digits(v), "", at.colour[k]]))];
    const values = data.importance[view()];
    return values ? [make("h4", "", `Strongest by ${view()}`), list(first(values).map(([v, k]) => [data.names[k], digits(v)]))] : [];
  }

  function ring(v, colour, strength) {
    const circle = document.createElementNS("http://www.w3.org/2000/svg", "circle"), hit = hits[v];
    for (const name of ["cx", "cy", "r"]) circle.setAttribute(name, hit.getAttribute(name));
    circle.setAttribute("fill", colour);
    circle.setAttribute("fill-opacity", (0.08 + 0.5 * strength).toFixed(2));
    spot.append(circle);
  }

  function show(v) {
    if (v === node) return;
    node = v;
    for (const hit of hits) hit.classList.toggle("on", Number(hit.dataset.node) === v);
    describe();
  }

  // one tab stop; arrow keys move to the nearest node on that side
  function step(dx, dy) {
    const spotOf = (hit) => [Number(hit.getAttribute("cx")), Number(hit.getAttribute("cy"))];
    const [x, y] = spotOf(hits[node ?? 0]);
    let best = null, least = Infinity;
    for (const hit of hits) {
      const [a, b] = spotOf(hit), along = (a - x) * dx + (b - y) * dy, aside = Math.abs((a - x) * dy + (b - y) * dx);
      const cost = along + 2 * aside;
      if (along > 0.5 && cost < least) [best, least] = [hit, cost];
    }
    if (best) best.focus();
  }

  const ways = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] };
  for (const hit of hits) {
    hit.addEventListener("pointerenter", () => show(Number(hit.dataset.node)));
    hit.addEventListener("focus", () => {
      for (const other of hits) other.setAttribute("tabindex", other === hit ? "0" : "-1");
      show(Number(hit.dataset.node));
    });
  }
  svg.addEventListener("keydown", (event) => {
    if (event.key === "Escape") show(null);
    if (!(event.key in ways)) return;
    event.preventDefault();
    step(...ways[event.key]);
  });
  svg.addEventListener("pointerleave", () => { if (!touch && !svg.contains(document.activeElement)) show(null); });
  root.addEventListener("change", draw);
  draw();

  // Play: from the nodes to the last clusters. Each node is a dot that moves to the medoid of its cluster.
  const button = root.querySelector("[data-play]"), still = matchMedia("(prefers-reduced-motion: reduce)").matches;
  let playing = 0;
  const wait = (ms) => new Promise((done) => setTimeout(done, ms));
  const home = (v, l) => l === 0 ? v : data.levels[l - 1].home[v] < 0 ? null : data.levels[l - 1].medoid[data.levels[l - 1].home[v]];
  const spotOf = (v) => [Number(hits[v].getAttribute("cx")), Number(hits[v].getAttribute("cy"))];
  function choose(mark, value) {
    const input = root.querySelector(`[${mark}][value="${value}"]`);
    if (input) input.checked = true;
  }
  async function move(from, to, turn) {
    const at = data.levels[to - 1], places = hits.map((_, v) => v), dots = document.createElementNS("http://www.w3.org/2000/svg", "g");
    const moving = places.map((v) => {
      const a = home(v, from), b = home(v, to), dot = document.createElementNS("http://www.w3.org/2000/svg", "circle");
      if (a === null) return null;
      dot.setAttribute("r", (0.22 * Number(svg.style.getPropertyValue("--unit"))).toFixed(1));
      dot.setAttribute("fill", b === null ? "var(--pale)" : at.colour[at.home[v]]);
      dots.append(dot);
      return { dot, start: spotOf(a), end: spotOf(b ?? a), fades: b === null };
    }).filter(Boolean);
    dots.setAttribute("data-moving", "");
    svg.append(dots);
    const began = performance.now(), length = still ? 0 : 1100;
    await new Promise((done) => {
      const frame = (now) => {
        const t = length ? Math.min(1, (now - began) / length) : 1, e = t * t * (3 - 2 * t);
        for (const { dot, start, end, fades } of moving) {
          dot.setAttribute("cx", (start[0] + e * (end[0] - start[0])).toFixed(1));
          dot.setAttribute("cy", (start[1] + e * (end[1] - start[1])).toFixed(1));
          dot.setAttribute("opacity", fades ? (1 - e).toFixed(2) : "0.9");
        }
        if (t < 1 && turn === playing) requestAnimationFrame(frame); else done();
      };
      requestAnimationFrame(frame);
    });
    dots.remove();
  }
  async function play() {
    const turn = ++playing;
    button.textContent = "■ Stop";
    choose("data-view", "clusters");
    for (let l = 0; l <= data.levels.length && turn === playing; l++) {
      if (l) await move(l - 1, l, turn);
      if (turn !== playing) break;
      choose("data-level", l);
      draw();
      await wait(l ? 900 : 500);
    }
    if (turn === playing) stop();
  }
  function stop() {
    playing++;
    button.textContent = "▶ Play";
  }
  button?.addEventListener("click", () => button.textContent.startsWith("▶") ? play() : stop());

  // numbers stay at least 10 pixels high in a small drawing, as far as they fit
  function fit() {
    const unit = Number(svg.style.getPropertyValue("--unit")), scale = svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;
    if (scale > 0 && ticked("data-numbers")) svg.style.setProperty("--number", `${Math.min(0.36 * unit, Math.max(0.23 * unit, 10 / scale)).toFixed(1)}px`);
  }
  new ResizeObserver(fit).observe(svg);

  function list(rows, more = 0) {
    const found = make("ul", "rows", "");
    for (const [name, value, aside = "", colour = ""] of rows) {
      const row = make("li", aside ? "" : "short", "");
      const dot = make("i", colour ? "dot" : "", "");
      if (colour) dot.style.background = colour;
      row.append(dot, make("span", "", name), make("b", "", value), make("small", "", aside));
      found.append(row);
    }
    if (more > 0) found.append(make("li", "more", `and ${more} more`));
    return found;
  }
}

function make(tag, name, words) {
  const found = document.createElement(tag);
  if (name) found.className = name;
  found.textContent = words;
  return found;
}

// A table or drawing wider than its container gets a line that says how to see the rest.
function hintAtScrolling() {
  const words = touch ? "Swipe sideways to see the rest →" : "Scroll sideways to see the rest →";
  const look = (boxes) => {
    for (const box of boxes) {
      const wide = box.scrollWidth > box.clientWidth + 1, hint = box.previousElementSibling?.matches(".swipe") ? box.previousElementSibling : null;
      if (wide && !hint) box.before(make("p", "swipe", words));
      if (!wide && hint) hint.remove();
    }
  };
  const watch = new ResizeObserver((entries) => look(entries.map((entry) => entry.target)));
  for (const box of document.querySelectorAll(".scroll")) watch.observe(box);
}

// A standalone drawing in the colours of the light page: styles inlined, hidden layers removed, the legend below.
const STYLES = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-opacity", "stroke-dasharray", "stroke-linecap",
  "stroke-linejoin", "opacity", "font-family", "font-size", "font-weight", "text-anchor", "dominant-baseline", "paint-order"];
function standalone(figure) {
  const source = figure.querySelector("svg"), copy = source.cloneNode(true), page = document.documentElement;
  page.classList.add("as-light");
  const from = [source, ...source.querySelectorAll("*")], to = [copy, ...copy.querySelectorAll("*")];
  from.forEach((element, k) => {
    if (element.closest("[hidden], .hits")) return;
    const style = getComputedStyle(element);
    for (const name of STYLES) to[k].setAttribute(name, style.getPropertyValue(name));
    for (const name of ["class", "style", "tabindex"]) to[k].removeAttribute(name);
  });
  for (const element of copy.querySelectorAll("[hidden], .hits")) element.remove();
  const { width, height } = source.viewBox.baseVal, look = getComputedStyle(figure);
  const keys = [...figure.querySelectorAll(".legend li")].map((item) => {
    const sign = item.querySelector("i");
    return { words: item.textContent, colour: sign && getComputedStyle(sign).color, kind: sign?.className ?? "" };
  });
  const total = height + 20 * keys.length + (keys.length ? 8 : 0);
  const add = (tag, values, words = "") => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(values)) element.setAttribute(name, value);
    element.textContent = words;
    copy.append(element);
    return element;
  };
  keys.forEach(({ words, colour, kind }, k) => {
    const y = height + 20 * k + 10;
    if (colour && kind === "key-dot") add("circle", { cx: 68, cy: y, r: 4, fill: colour });
    else if (colour) add("line", { x1: 58, x2: 78, y1: y, y2: y, stroke: colour, "stroke-width": kind === "key-band" ? 10 : 3,
      "stroke-opacity": kind === "key-band" ? 0.45 : 1, ...(kind === "key-dashed" && { "stroke-dasharray": "5 4" }) });
    add("text", { x: colour ? 86 : 58, y: y + 4, fill: "#1f2430", "font-size": "12px", "font-family": look.fontFamily }, words);
  });
  const ground = add("rect", { x: 0, y: 0, width, height: total, fill: "#ffffff" });
  copy.prepend(ground);
  page.classList.remove("as-light");
  const sizes = { xmlns: "http://www.w3.org/2000/svg", viewBox: `0 0 ${width} ${total}`, width, height: total };
  for (const [name, value] of Object.entries(sizes)) copy.setAttribute(name, value);
  return { text: new XMLSerializer().serializeToString(copy), width, height: total };
}

async function save(figure, kind) {
  const { text, width, height } = standalone(figure), name = figure.dataset.figure.replace(/[^\p{L}\p{N}.-]+/gu, "-") || "figure";
  let blob = new Blob([text], { type: "image/svg+xml" });
  if (kind === "png") {
    const picture = new Image(), canvas = document.createElement("canvas"), scale = 3;
    picture.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
    await picture.decode();
    [canvas.width, canvas.height] = [width * scale, height * scale];
    canvas.getContext("2d").drawImage(picture, 0, 0, canvas.width, canvas.height);
    blob = await new Promise((done) => canvas.toBlob(done, "image/png"));
  }
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = `${name.slice(0, 80)}.${kind}`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

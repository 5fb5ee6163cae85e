"use strict";
// Every .explorer: controls choose layers of one drawing; a node under the pointer or the focus tells its numbers.
for (const root of document.querySelectorAll(".explorer")) explore(root);

function explore(root) {
  const data = JSON.parse(root.querySelector('script[type="application/json"]').textContent);
  const svg = root.querySelector("svg.graph"), told = root.querySelector("[data-told]");
  const meaning = root.querySelector("[data-meaning]"), spot = svg.querySelector("[data-spot]");
  const hits = [...svg.querySelectorAll("[data-node]")];
  let node = null;

  const chosen = (mark, otherwise) => root.querySelector(`[${mark}]:checked`)?.value ?? otherwise;
  const level = () => Number(chosen("data-level", 0));
  const view = () => chosen("data-view", "");
  const ticked = (mark) => root.querySelector(`[${mark}]`)?.checked ?? false;
  const digits = (v) => v.toFixed(data.digits);

  function draw() {
    for (const g of svg.querySelectorAll("[data-layer]")) {
      const layer = g.dataset.layer, here = !g.dataset.at || Number(g.dataset.at) === level();
      const wanted = layer === "links" ? view() === "clusters" && ticked("data-links")
        : layer === "badges" ? view() === "clusters" && ticked("data-numbers")
        : layer === "numbers" ? ticked("data-numbers")
        : layer === "truth" ? ticked("data-truth") : layer === view();
      g.toggleAttribute("hidden", !(here && wanted));
    }
    root.querySelector("[data-links]")?.closest("label").toggleAttribute("hidden", view() !== "clusters");
    for (const scale of root.querySelectorAll("[data-scale]")) scale.toggleAttribute("hidden", scale.dataset.scale !== view());
    for (const words of root.querySelectorAll(".drawing .words")) words.toggleAttribute("hidden", view() !== "clusters");
    meaning.textContent = data.meaning[view()] ?? "";
    tell();
  }

  function tell() {
    const at = level() ? data.levels[level() - 1] : null;
    spot.replaceChildren();
    const home = node === null || !at ? -1 : at.home[node];
    for (const area of svg.querySelectorAll("[data-cluster]"))
      area.classList.toggle("dim", home >= 0 && Number(area.dataset.cluster) !== home);
    if (node === null) {
      told.replaceChildren(make("p", "hint", "Point at a node, or focus the drawing and use the arrow keys."));
      return;
    }
    const parts = [make("h3", "", data.names[node])];
    const kinds = Object.entries(data.importance);
    if (kinds.length) {
      parts.push(make("h4", "", `Importance for ${data.about}`));
      parts.push(list(kinds.map(([kind, values]) => [kind, digits(values[node])])));
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
    told.replaceChildren(...parts);
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
    tell();
  }

  // one stop for the Tab key; arrows walk to the nearest node on that side
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
  svg.addEventListener("pointerleave", () => { if (!svg.contains(document.activeElement)) show(null); });
  root.addEventListener("change", draw);
  draw();

  function list(rows, more = 0) {
    const found = make("ul", "rows", "");
    for (const [name, value, aside = "", colour = ""] of rows) {
      const row = make("li", "", "");
      const dot = make("i", colour ? "dot" : "", "");
      if (colour) dot.style.background = colour;
      row.append(dot, make("span", "", name), make("b", "", value), make("small", "", aside));
      found.append(row);
    }
    if (more > 0) found.append(make("li", "more", `and ${more} more`));
    return found;
  }

  function make(tag, name, words) {
    const found = document.createElement(tag);
    if (name) found.className = name;
    found.textContent = words;
    return found;
  }
}

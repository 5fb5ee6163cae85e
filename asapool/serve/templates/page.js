"use strict";
const $ = (id) => document.getElementById(id);
const molecules = document.body.dataset.molecules === "yes";
const descriptors = document.body.dataset.descriptors === "yes"; // the model reads columns of a table
let shown = [];

function fail(text) { $("error").textContent = text; $("error").hidden = !text; }

async function ask(address, body) {
  const headers = { "Content-Type": "application/json" };
  if ($("key")) headers["Authorization"] = "Bearer " + $("key").value;
  let response;
  try {
    response = await fetch(address, { method: "POST", headers, body: JSON.stringify(body) });
  } catch { throw new Error("The service does not respond. Is it still running?"); }
  const answer = await response.json().catch(() => ({}));
  if (!response.ok) throw new Error(answer.error || "The service answered with status " + response.status);
  return answer;
}

function request(text) {
  if (descriptors) return { csv: text };
  if (molecules && !text.trimStart().startsWith("{")) {
    return { smiles: text.split("\n").map((line) => line.trim()).filter(Boolean) };
  }
  return { jsonl: text };
}

function fileRequest(name, text) {
  const end = name.toLowerCase().split(".").pop();
  if (end === "graphml") return { graphml: text };
  if (end === "jsonl" || end === "ndjson") return { jsonl: text };
  return { csv: text };
}

async function predict(body) {
  fail("");
  $("state").textContent = "Predicting…";
  $("go").disabled = true;
  try {
    const { results } = await ask("predict", body);
    shown = results.map((row, place) => ({ row, body: single(body, row, place) }));
    draw();
    const failed = results.filter((row) => row.error).length, done = results.length - failed;
    $("state").textContent = (done === 1 ? "1 prediction" : done + " predictions") + (failed ? ", " + failed + " could not be read" : "");
    const first = shown.findIndex((item) => !item.row.error);
    if (first >= 0) await explain(first); else $("explanation").hidden = true;
  } catch (error) {
    fail(error.message);
    $("state").textContent = "";
  } finally { $("go").disabled = false; }
}

function single(body, row, place) {
  if (row.smiles !== undefined && !descriptors) return { smiles: row.smiles };
  if (body.jsonl) return { jsonl: body.jsonl.split("\n").filter((line) => line.trim())[place] };
  return { ...body, index: place };
}

function cell(tag, text, kind) {
  const made = document.createElement(tag);
  made.textContent = text === null || text === undefined ? "" : String(text);
  if (kind) made.className = kind;
  return made;
}

function columns() {
  const names = [];
  for (const { row } of shown) for (const name of Object.keys(row)) if (!names.includes(name) && name !== "error") names.push(name);
  // the SMILES come last, so that a phone shows the prediction without scrolling
  return names.includes("smiles") ? [...names.filter((name) => name !== "smiles"), "smiles"] : names;
}

function draw() {
  const names = columns(), table = $("table"), head = document.createElement("thead"), rows = document.createElement("tbody");
  const top = document.createElement("tr");
  top.append(cell("th", "explain"), ...names.map((name) => { const th = cell("th", name.replaceAll("_", " ")); th.scope = "col"; return th; }));
  head.append(top);
  shown.slice(0, 500).forEach((item, place) => {
    const line = document.createElement("tr"), action = document.createElement("td");
    if (!item.row.error) {
      const button = cell("button", "Show", "plain");
      button.type = "button";
      button.setAttribute("aria-label", "explain " + item.row.id);
      button.addEventListener("click", () => explain(place).catch((error) => fail(error.message)));
      action.append(button);
    }
    line.append(action);
    for (const name of names) {
      const value = item.row[name];
      if (item.row.error && name !== "id" && name !== "smiles") continue;
      line.append(cell("td", typeof value === "number" ? +value.toPrecision(4) : value, name === "smiles" ? "wide" : typeof value === "number" ? "number" : ""));
      if (item.row.error && name === "id") { const bad = cell("td", item.row.error, "bad"); bad.colSpan = Math.max(1, names.length - 2); line.append(bad); }
    }
    rows.append(line);
  });
  table.replaceChildren(head, rows);
  $("results").hidden = false;
  for (const row of $("columns").querySelectorAll("[data-column]")) row.hidden = !names.some((name) => name.startsWith(row.dataset.column));
  $("columns").hidden = !$("columns").querySelector("[data-column]:not([hidden])");
  $("swipe").hidden = table.parentElement.scrollWidth <= table.parentElement.clientWidth + 1;
}

function picture(svg, title, caption) {
  const figure = document.createElement("figure");
  if (svg) {
    const image = document.createElement("img");
    image.src = "data:image/svg+xml;charset=utf-8," + encodeURIComponent(svg);
    image.alt = title;
    figure.append(image);
  }
  figure.append(caption);
  return figure;
}

async function explain(place) {
  const item = shown[place];
  [...$("table").tBodies[0].rows].forEach((row, k) => row.classList.toggle("chosen", k === place));
  const answer = await ask("explain", item.body);
  $("explanation-title").textContent = "Why: " + (item.row.smiles || item.row.id);
  $("about").textContent = "Importance for " + answer.about + (answer.note ? ". " + answer.note : "");
  $("pictures").replaceChildren(...answer.pictures.map(({ title, text, svg }) => {
    const caption = document.createElement("figcaption");
    caption.append(cell("strong", title), " · " + text);
    return picture(svg, title, caption);
  }));
  $("neighbours").replaceChildren(...answer.neighbours.map((one) => {
    const caption = document.createElement("figcaption");
    caption.append(cell("strong", one.label), " · " + one.id + " · distance " + one.distance);
    return picture(one.svg, one.smiles || one.id, caption);
  }));
  $("nearest").hidden = !answer.neighbours.length;
  $("explanation").hidden = false;
}

function download() {
  const names = [...columns(), "error"];
  // a spreadsheet must not evaluate a cell that begins like a formula
  const quoted = (value) => { let text = value === null || value === undefined ? "" : String(value); if (typeof value === "string" && /^[=+\-@\t]/.test(text)) text = "'" + text; return /[",\n\r]/.test(text) ? '"' + text.replaceAll('"', '""') + '"' : text; };
  const text = [names, ...shown.map(({ row }) => names.map((name) => row[name]))].map((row) => row.map(quoted).join(",")).join("\n") + "\n";
  const link = document.createElement("a");
  link.href = "data:text/csv;charset=utf-8," + encodeURIComponent(text);
  link.download = "predictions.csv";
  link.click();
}

async function read(file) {
  if (!file) return;
  if (file.size > Number(document.body.dataset.most)) return fail("The file is larger than the service allows: " + document.body.dataset.most + " bytes.");
  await predict(fileRequest(file.name, await file.text()));
}

$("form").addEventListener("submit", (event) => {
  event.preventDefault();
  if ($("text").value.trim()) predict(request($("text").value));
});
$("text").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) { event.preventDefault(); $("form").requestSubmit(); }
});
$("file").addEventListener("change", () => read($("file").files[0]).then(() => { $("file").value = ""; }));
$("download").addEventListener("click", download);
for (const name of ["dragover", "dragleave", "drop"]) {
  document.addEventListener(name, (event) => {
    event.preventDefault();
    $("form").classList.toggle("over", name === "dragover");
    if (name === "drop") read(event.dataTransfer.files[0]);
  });
}

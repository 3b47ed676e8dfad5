"use strict";
(() => {
  const $ = id => document.getElementById(id);
  const made = (name, text, more) => Object.assign(document.createElement(name), text === undefined ? {} : {textContent: text}, more);
  const POLL = 500, CHECK = 400;  // ms between two looks at the folder; ms after the last key until a text is checked

  const LOST = $("lost").textContent;

  let state = {stores: [], studies: [], run: false};
  let shown = null;      // {store} or {study} or {stores: [two]}
  let first = true;      // the first look that finds stores
  let asked = [];        // KEY=VALUE texts of the question
  let row = null, pinned = null;
  const ticked = new Set();

  // ------------------------------------------------------------------------------------------------- the server

  const address = (path, parameters) => {
    const query = new URLSearchParams();
    for (const [name, values] of Object.entries(parameters))
      for (const value of [values].flat()) query.append(name, value);
    return `${path}?${query}`;
  };

  async function answer(response) {
    if (!response.ok) throw new Error(await response.text() || `the desk answers ${response.status}`);
    return response;
  }
  // The key of the session is in the storage of this port's pages only; it is sent with every request.
  const authorized = () => ({"Authorization": `Bearer ${sessionStorage.getItem("session")}`});
  const get = async (path, parameters = {}) =>
    (await answer(await fetch(address(path, parameters), {headers: authorized()}))).json();
  const post = async (path, body) => answer(await fetch(path, {
    method: "POST", headers: {...authorized(), "Content-Type": "application/json"}, body: JSON.stringify(body),
  }));

  // The token of the address opens a session, once, and leaves the address.
  async function enter() {
    const token = new URLSearchParams(location.search).get("token");
    if (!token) return;
    history.replaceState(null, "", "/");
    sessionStorage.setItem("session", await (await post("/enter", {token})).json());
  }

  // What went wrong is said in `place`; a later success takes it away.
  async function tried(place, work) {
    try {
      const value = await work();
      place.textContent = "";
      return value;
    } catch (error) {
      place.textContent = error.message;
      return undefined;
    }
  }

  // ------------------------------------------------------------------------------------------------- the folder

  async function look() {
    try {
      state = await get("/state");
      $("lost").hidden = true;
    } catch (error) {  // a TypeError: there is no answer at all
      $("lost").textContent = error instanceof TypeError ? LOST : error.message;
      $("lost").hidden = false;
      return;
    }
    $("folder").textContent = state.folder;
    list();
    if (first && state.stores.length) {  // the newest store, unless the reader was faster
      first = false;
      if (!shown && state.stores[0].state !== "unreadable") showStore(state.stores[0].place);
    }
    if (shown?.store) renew();  // the list goes on meanwhile
    if (shown?.study) await showPrinted();
  }

  function list() {
    const ago = seconds => new Date(seconds * 1000).toLocaleString();
    sameChildren($("stores"), state.stores, s => s.place, s => [s.state, s.title, s.evaluations, s.changed].join(), s => {
      const item = made("li", undefined, {className: s.state});
      const tick = made("input", undefined, {type: "checkbox", checked: ticked.has(s.place), ariaLabel: `compare ${s.place}`});
      tick.addEventListener("change", () => { ticked[tick.checked ? "add" : "delete"](s.place); list(); });
      const open = made("button", s.title, {type: "button", title: s.problem});
      open.append(made("small", s.place), made("small", s.problem || `${s.state}, ${s.evaluations} evaluation${s.evaluations === 1 ? "" : "s"}, ${ago(s.changed)}`));
      open.addEventListener("click", () => showStore(s.place));
      item.append(tick, open);
      return item;
    });
    sameChildren($("studies"), state.studies.map(place => ({place})), s => s.place, () => "", s => {
      const item = made("li"), open = made("button", s.place, {type: "button"});
      open.addEventListener("click", () => showStudy(s.place));
      item.append(open);
      return item;
    });
    for (const item of [...$("stores").children, ...$("studies").children])
      item.querySelector("button").setAttribute("aria-current", String(item.dataset.name === (shown?.store ?? shown?.study)));
    $("compare").disabled = ticked.size < 2;
  }

  // The items of a list in their order; those that have not changed stay, so that focus and clicks are not lost.
  function sameChildren(parent, items, name, version, make) {
    const known = new Map([...parent.children].map(child => [child.dataset.name, child]));
    const wanted = items.map(item => {
      const child = known.get(name(item));
      if (child && child.dataset.version === version(item)) return child;
      const fresh = make(item);
      Object.assign(fresh.dataset, {name: name(item), version: version(item)});
      return fresh;
    });
    if (wanted.length !== parent.children.length || wanted.some((child, i) => parent.children[i] !== child))
      parent.replaceChildren(...wanted);
  }

  function turnTo(what) {
    shown = what;
    $("empty").hidden = true;
    $("store").hidden = !what.store;
    $("study").hidden = !what.study;
    $("comparison").hidden = !what.stores;
    list();
  }

  // --------------------------------------------------------------------------------------------------- a store

  const entry = () => state.stores.find(s => s.place === shown?.store);

  async function showStore(place) {
    turnTo({store: place});
    Object.assign(shown, {stamp: null, busy: false});
    asked = []; row = null; pinned = null;
    $("design").hidden = true;
    $("question").hidden = true;
    $("frames").replaceChildren();
    const one = entry();
    $("title").textContent = one ? `${one.title} (${place})` : place;
    const question = await tried($("said"), () => get("/question", {store: place}));
    if (!question || shown.store !== place) return;
    $("part").replaceChildren(new Option("the main figures", "live"), new Option("the whole report", ""),
      ...question.parts.map(name => new Option(name.replaceAll("_", " "), name)));
    ask(question);
    await renew();
  }

  async function renew() {
    const one = entry(), at = shown;
    if (!one || at.busy) return;
    $("stop").hidden = !(state.run && one.state === "running");
    $("resume").hidden = !(state.run && !one.made_elsewhere && one.state !== "running" && one.state !== "unreadable");
    if (at.stamp === one.stamp || (at.stamp !== null && !$("follow").checked)) return;
    at.busy = true;
    try {
      const [progress] = await Promise.all([tried($("said"), () => get("/progress", {store: at.store})), draw()]);
      if (shown !== at) return;
      if (progress) {
        $("line").textContent = one.state === "running" ? progress.line : `${one.state}; ${progress.line}`;
        $("share").hidden = progress.share === null || one.state !== "running";
        if (progress.share !== null) $("share").value = progress.share;
      }
      at.stamp = one.stamp;
    } finally {
      at.busy = false;
    }
  }

  async function draw() {
    const at = shown, part = $("part").value;
    const name = () => get("/report", {store: at.store, part: part ? [part] : [], set: asked});
    await tried($("said"), () => intoFrame($("frames"), name, () => shown === at));
  }

  // The page that the server has computed under the promised name, in a frame; the next one is drawn behind the present
  // one, which keeps its place and choices. It is not shown where `wanted` says no by then, or after a later call.
  const calls = new WeakMap();

  async function intoFrame(box, name, wanted = () => true) {
    const call = (calls.get(box) ?? 0) + 1;
    calls.set(box, call);
    for (const late of box.querySelectorAll("iframe.next")) {
      late.dispatchEvent(new Event("dropped"));
      late.remove();
    }
    const last = () => calls.get(box) === call && wanted();
    let source;
    try {
      source = address("/computed", {page: await name()});
    } catch (error) {
      if (last()) throw error;
    }
    if (!source || !last()) return undefined;
    const before = box.querySelector("iframe:not(.next)");
    const frame = made("iframe", undefined, {className: "next", title: "Figures", src: source});
    box.append(frame);
    return new Promise((resolve, reject) => {
      frame.addEventListener("dropped", resolve);
      frame.addEventListener("load", () => {
        const inside = frame.contentDocument;
        const refused = inside.contentType === "text/html" ? "" : inside.body.textContent;
        if (refused || !wanted()) {
          frame.remove();
          if (refused) reject(new Error(refused));
          else resolve();
          return;
        }
        inside.documentElement.dataset.framed = "";
        if (before?.contentDocument) keepPlace(before, frame);
        setTimeout(() => {  // time for the figures in view
          if (!frame.isConnected) return;
          before?.remove();
          frame.classList.remove("next");
          resolve();
        }, before ? 300 : 0);
      });
    });
  }

  function keepPlace(before, frame) {
    const was = before.contentDocument, is = frame.contentDocument;
    const selects = page => [...page.querySelectorAll("figure, #common")].map(figure => [...figure.querySelectorAll("select")]);
    if (was.documentElement.dataset.theme) is.documentElement.dataset.theme = was.documentElement.dataset.theme;
    const chosen = selects(was).map(some => some.map(s => s.value));
    selects(is).forEach((some, i) => some.forEach((select, k) => {
      const value = chosen[i]?.[k];
      if (value === undefined || value === select.value || ![...select.options].some(o => o.value === value)) return;
      select.value = value;
      select.dispatchEvent(new Event("change"));
    }));
    frame.contentWindow.scrollTo(0, before.contentWindow.scrollY);
  }

  $("part").addEventListener("change", draw);
  $("stop").addEventListener("click", () => tried($("said"), () => post("/stop", {store: shown.store})));
  $("resume").addEventListener("click", () => tried($("said"), () => post("/resume", {store: shown.store})));
  $("ask").addEventListener("click", () => {
    $("question").hidden = !$("question").hidden;
    $("ask").setAttribute("aria-expanded", String(!$("question").hidden));
  });

  // Limits, aggregations and rules of choice asked otherwise, answered from what is on record.
  function ask(question) {
    const form = $("question"), fields = [];
    const field = (key, element) => { fields.push([key, element, element.value]); return element; };
    const over = (key, now) => {
      const known = question.aggregations.includes(now) ? question.aggregations : [now, ...question.aggregations];
      const select = made("select");
      select.append(...known.map(name => new Option(name, name, name === now, name === now)));
      return field(key, select);
    };
    const lines = made("table");
    const line = (...cells) => {
      const tr = made("tr");
      for (const cell of cells) { const td = made("td"); td.append(cell); tr.append(td); }
      lines.append(tr);
    };
    for (const o of question.objectives)
      line(`${o.direction} ${o.name}`, question.scenarios > 1 ? over(`objectives.${o.name}.over`, o.over) : "", "",
        question.objectives.length > 1 ? made("input", undefined, {size: 6, placeholder: "weight", className: "weight", name: o.name}) : "");
    for (const c of question.constraints) {
      const limits = made("span");
      for (const side of ["min", "max"])
        if (side in c) limits.append(`${side} `, field(`constraints.${c.name}.${side}`, made("input", undefined, {size: 14, value: `${c[side]} ${c.unit}`.trim()})), " ");
      line(c.name, question.scenarios > 1 ? over(`constraints.${c.name}.over`, c.over) : "", limits, "");
    }
    const rule = made("select", undefined, {ariaLabel: "rule of choice"});
    rule.append(new Option("rules of the study", ""), ...["utopia", "topsis", "weighted_tchebycheff", "knee"].map(n => new Option(n, n)));
    const more = made("textarea", undefined, {placeholder: "more, one a line: KEY=VALUE, as for designopt report --set", spellcheck: false});
    const buttons = made("div", undefined, {className: "bar"});
    const submit = made("button", "Answer", {type: "submit"}), clear = made("button", "As it was run", {type: "button"});
    if (question.objectives.length > 1) buttons.append("choose by ", rule);
    buttons.append(submit, clear);
    form.replaceChildren(lines, more, buttons);
    const again = async () => {
      row = null; $("design").hidden = true;
      await draw();
    };
    form.onsubmit = event => {
      event.preventDefault();
      asked = fields.filter(([, element, before]) => element.value !== before).map(([key, element]) => `${key}=${element.value}`);
      const weights = [...form.querySelectorAll(".weight")].filter(w => w.value.trim()).map(w => `${w.name}: ${w.value}`);
      if (rule.value) asked.push(`report.choose=[${rule.value === "knee" || !weights.length ? rule.value : `{${rule.value}: {weights: {${weights.join(", ")}}}}`}]`);
      asked.push(...more.value.split("\n").map(l => l.trim()).filter(Boolean));
      again();
    };
    clear.addEventListener("click", () => {
      for (const [, element, before] of fields) element.value = before;
      form.querySelectorAll(".weight").forEach(w => { w.value = ""; });
      rule.value = ""; more.value = ""; asked = [];
      again();
    });
  }

  // -------------------------------------------------------------------------------------------------- a design

  // Only pages of the desk are listened to.
  addEventListener("message", event => {
    if (event.origin === location.origin && Number.isInteger(event.data?.design)) showDesign(event.data.design);
  });

  async function showDesign(number) {
    const at = shown, store = at?.store;
    if (!store) return;
    const [one, named] = await tried($("said"), () => Promise.all([
      get("/design", {store, row: number, set: asked}), get("/designs", {store, set: asked})])) ?? [];
    if (!one || shown !== at) return;
    row = one;
    $("named").replaceChildren(new Option(`number ${number}`, number), ...named.map(d => new Option(d.name, d.row)));
    const chosen = named.find(d => d.row === number);
    if (chosen) $("named").value = String(number), $("named").selectedIndex = named.indexOf(chosen) + 1;
    $("design").hidden = false;
    $("compute").hidden = !state.run;
    tables();
  }

  function tables() {
    const box = $("tables");
    box.replaceChildren(made("p", [`design ${row.row}`, ...row.labels, row.asked].filter(Boolean).join(", ")));
    if (pinned) box.append(made("p", `beside it: design ${pinned.row}${pinned.store === shown.store ? "" : ` of ${pinned.store}`}`));
    row.tables.forEach((table, t) => {
      const others = new Map((pinned?.tables.find(o => o[0][0] === table[0][0]) ?? []).slice(1).map(line => [line[0], line[1]]));
      const element = made("table"), beside = pinned && t < 3;
      table.forEach((line, i) => {
        const tr = made("tr");
        line.forEach((cell, k) => {
          tr.append(made(i ? "td" : "th", cell));
          if (beside && k === 1)
            tr.append(i ? made("td", others.get(line[0]) ?? "", {className: "other"}) : made("th", `design ${pinned.row}`));
        });
        element.append(tr);
      });
      box.append(element);
    });
    for (const message of row.messages) box.append(made("pre", message));
  }

  $("named").addEventListener("change", () => showDesign(Number($("named").value)));
  $("pin").addEventListener("click", () => { pinned = {...row, store: shown.store}; tables(); });
  $("close").addEventListener("click", () => { $("design").hidden = true; });
  $("compute").addEventListener("click", async () => {
    const button = $("compute"), words = button.textContent;
    button.disabled = true;
    button.textContent = "Computing …";
    const page = await tried($("said"), async () => (await post("/compute", {store: shown.store, row: row.row})).json());
    button.disabled = false;
    button.textContent = words;
    if (page) {
      let box = $("tables").querySelector(".frames");
      if (!box) {
        box = made("div", undefined, {className: "frames"});
        box.style.minHeight = "60vh";
        $("tables").prepend(box);
      }
      intoFrame(box, async () => page);
    }
  });

  $("compare").addEventListener("click", async () => {
    const stores = [...ticked];
    turnTo({stores});
    const box = $("compared"), at = shown;
    box.replaceChildren();
    try {
      await intoFrame(box, () => get("/compare", {store: stores}), () => shown === at);
    } catch (error) {
      box.append(made("p", error.message, {role: "alert"}));
    }
  });

  // --------------------------------------------------------------------------------------------------- a study

  let checking = 0;

  async function showStudy(place) {
    turnTo({study: place});
    const at = shown;
    $("file").textContent = place;
    $("text").value = "";
    $("findings").replaceChildren();
    $("printed").textContent = "";
    $("ways").hidden = $("rescored").hidden = true;
    const study = await tried($("wrong"), () => get("/study", {file: place}));
    if (!study || shown !== at) return;
    $("text").value = study.text;
    Object.assign(at, {saved: $("text").value, fileStamp: study.stamp});  // a page knows one kind of line ends
    $("output").value = study.store;
    for (const id of ["save", "into", "start"]) $(id).hidden = !state.run;
    $("text").readOnly = false;
    edited();
  }

  function edited() {
    const text = $("text").value;
    $("numbers").textContent = text.split("\n").map((_, i) => i + 1).join("\n");
    $("save").disabled = text === shown.saved;
    $("start").disabled = text !== shown.saved;
    $("start").title = text === shown.saved ? "" : "save it first";
    clearTimeout(checking);
    checking = setTimeout(check, CHECK);
  }

  async function check() {
    const at = shown, text = $("text").value;
    const findings = await tried($("wrong"), async () => (await post("/check", {file: at.study, text})).json());
    if (!findings || shown !== at || $("text").value !== text) return;
    $("findings").replaceChildren(...findings.map(f => {
      const item = made("li"), place = made("button", f.line ? `line ${f.line}, column ${f.column}` : "study", {type: "button"});
      place.addEventListener("click", () => goTo(f.line, f.column));
      item.append(place, f.message);
      return item;
    }));
    if (!findings.length) $("findings").append(made("p", "a valid study"));
  }

  function goTo(line, column) {
    if (!line) return;
    const area = $("text"), before = area.value.split("\n").slice(0, line - 1).reduce((n, l) => n + l.length + 1, 0);
    area.focus();
    area.setSelectionRange(before + (column ?? 1) - 1, before + (column ?? 1));
    area.scrollTop = (line - 5) * parseFloat(getComputedStyle(area).lineHeight);
  }

  async function showPrinted() {
    const text = shown.started && await get("/printed", {store: shown.started}).catch(() => "");
    if (text) $("printed").textContent = text;
  }

  $("text").addEventListener("input", edited);
  $("text").addEventListener("scroll", () => { $("numbers").scrollTop = $("text").scrollTop; });
  $("save").addEventListener("click", async () => {
    const at = shown, text = $("text").value;
    const saved = await tried($("wrong"), async () => (await post("/save", {file: at.study, text, stamp: at.fileStamp})).json());
    if (saved) { Object.assign(at, {saved: text, fileStamp: saved.stamp}); edited(); }
  });
  const WAYS = {"--rescore": "Re-score", "--beside": "New store beside", "--replace": "Replace"};

  async function start(way) {
    const at = shown, box = $("ways");
    $("rescored").hidden = true;
    box.hidden = way !== "--rescore";
    const answered = await tried($("wrong"), async () =>
      (await post("/start", {file: at.study, store: $("output").value, way})).json());
    if (!answered || shown !== at) return;
    if (answered.store) at.started = answered.store;
    if (answered.page) {
      $("rescored").hidden = false;
      await intoFrame($("rescored"), async () => answered.page, () => shown === at);
    }
    if (!answered.ways) return;
    const lines = made("ul"), choices = made("table");
    lines.append(...answered.differences.map(clause => made("li", clause)));
    for (const [option, consequence] of answered.ways) {
      const line = made("tr"), cell = made("td"), button = made("button", WAYS[option], {type: "button"});
      button.addEventListener("click", () => start(option));
      cell.append(button);
      line.append(cell, made("td", consequence));
      choices.append(line);
    }
    box.replaceChildren(made("p", "These results are of another study:"), lines, choices);
    box.hidden = false;
  }
  $("start").addEventListener("click", () => start(""));
  addEventListener("beforeunload", event => {
    if (shown?.study && $("text").value !== shown.saved && state.run) event.preventDefault();
  });

  // Looks follow each other, however long one takes.
  const watch = async () => { await look(); setTimeout(watch, POLL); };
  enter().catch(() => undefined).then(watch);  // the first look says what is wrong
})();

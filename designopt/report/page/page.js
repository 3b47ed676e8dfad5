"use strict";
(() => {
  const {THEMED, CATEGORIES} = JSON.parse(document.getElementById("colours").textContent);
  const root = document.documentElement;
  const figures = [];
  let printing = false;

  const narrow = () => isNarrow(printing);
  const dark = () => !printing && (root.dataset.theme
    ? root.dataset.theme === "dark"
    : matchMedia("(prefers-color-scheme: dark)").matches);

  const isObject = v => v !== null && typeof v === "object" && !Array.isArray(v);

  // A copy in which names of themed colours have become colours.
  function resolved(value, index) {
    if (typeof value === "string") return value[0] === "@" && THEMED[value] ? THEMED[value][index] : value;
    if (Array.isArray(value)) return value.map(v => resolved(v, index));
    if (isObject(value)) {
      const copy = {};
      for (const key in value) copy[key] = resolved(value[key], index);
      return copy;
    }
    return value;
  }

  function merge(target, patch) {
    for (const key in patch) {
      if (isObject(patch[key]) && isObject(target[key]) && !("bdata" in patch[key])) merge(target[key], patch[key]);
      else target[key] = patch[key];
    }
  }

  function template() {
    const c = name => THEMED[name][dark() ? 1 : 0];
    const axis = {
      gridcolor: c("@grid"), zerolinecolor: c("@grid"), linecolor: c("@faint"), showline: true, ticks: "outside",
      tickcolor: c("@faint"), ticklen: 4, automargin: true, exponentformat: "power", minexponent: 5, title: {standoff: 10}, zeroline: false,
    };
    const space = {...axis, backgroundcolor: c("@surface"), showbackground: true};
    return {layout: {
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", colorway: CATEGORIES.map(c),
      font: {family: "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif", size: 13, color: c("@ink")},
      hoverlabel: {bgcolor: c("@surface"), bordercolor: c("@faint"), font: {color: c("@ink"), size: 12}, align: "left"},
      xaxis: axis, yaxis: axis, scene: {xaxis: space, yaxis: space, zaxis: space},
      legend: {bgcolor: "rgba(0,0,0,0)"},
      modebar: {bgcolor: "rgba(0,0,0,0)", color: c("@faint"), activecolor: c("@accent")},
      updatemenudefaults: {bgcolor: c("@surface"), bordercolor: c("@faint"), font: {color: c("@ink")}},
      sliderdefaults: {bgcolor: c("@grid"), activebgcolor: c("@accent"), bordercolor: c("@faint"), tickcolor: c("@faint"),
                       font: {color: c("@muted")}},
    }};
  }

  // The bytes of a text that the page holds (base85 of zlib).
  async function unpacked(id) {
    const text = document.getElementById(id).textContent, signs = new Map();
    [..."0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;,=>?@^_`{|}~"].forEach((c, i) => signs.set(c, i));
    const bytes = new Uint8Array(Math.floor(text.length / 5) * 4 + 4), view = new DataView(bytes.buffer);
    let length = 0;
    for (let i = 0; i < text.length; i += 5) {
      let value = 0;
      for (let k = i; k < i + 5; k++) value = value * 85 + (k < text.length ? signs.get(text[k]) : 84);
      view.setUint32(length, value);
      length += Math.min(5, text.length - i) - 1;
    }
    const stream = new Blob([bytes.subarray(0, length)]).stream().pipeThrough(new DecompressionStream("deflate"));
    return new Uint8Array(await new Response(stream).arrayBuffer());
  }

  // What the figures draw, as JSON in lines, and the bytes of its arrays; the plotting library, if it is in the page.
  let lines = [], block = null, loaded = false;
  const ready = (async () => {
    const bytes = await unpacked("data"), end = 4 + new DataView(bytes.buffer).getUint32(0, true);
    lines = new TextDecoder().decode(bytes.subarray(4, end)).split("\n");
    block = bytes.subarray(end);
    if (!window.Plotly) (0, eval)(new TextDecoder().decode(await unpacked("plotly")));
    loaded = true;
  })();

  const parsed = number => JSON.parse(lines[number], (_, value) => {
    if (!isObject(value) || typeof value.bdata !== "number") return value;
    const {bdata, size, ...others} = value, count = size / (value.dtype === "f8" ? 8 : 4);
    let text = "";
    for (let i = 0; i < count; i++)
      for (let at = bdata + i; at < bdata + size; at += count) text += String.fromCharCode(block[at]);
    return {...others, bdata: btoa(text)};
  });

  const draw = figure => loaded ? drawNow(figure) : ready.then(() => drawNow(figure));

  // The plot of the options `key`, as numbers with commas.
  function plotOf(spec, key) {
    let plot = {data: [], layout: {}, frames: [], ...spec.plot};
    const variant = spec.variants[key];
    if (variant && Array.isArray(variant.data)) plot = {layout: {}, frames: [], ...variant};
    else if (variant) {
      for (const traces in variant.data || {}) {
        const numbers = traces === "*" ? plot.data.map((_, i) => i) : traces.split(",").map(Number);
        for (const i of numbers) merge(plot.data[i], structuredClone(variant.data[traces]));
      }
      merge(plot.layout, variant.layout || {});
      if (variant.frames) plot.frames = variant.frames;
    }
    return plot;
  }

  // A second design or scenario in dotted lines over the shown one, where a figure consists of lines.
  function overlay(figure, plot, key) {
    const second = figure.selects.map(s => s.overlay?.value || s.value).join(",");
    if (second === key) return false;
    const other = plotOf(parsed(figure.number), second);
    if ([plot, other].some(p => p.frames.length || p.data.some(t => (t.type ?? "scatter") !== "scatter" || t.stackgroup))) return false;
    const points = t => JSON.stringify([t.x, t.y, t.xaxis, t.yaxis]), shown = new Set(plot.data.map(points));
    const names = new Set(plot.data.map(t => t.name));
    for (const [name, axis] of Object.entries(plot.layout)) {
      const ranges = /^[xy]axis/.test(name) ? [axis.range, other.layout[name]?.range] : [];
      if (ranges.every(Array.isArray) && ranges.length && ranges.every(([low, high]) => low < high))
        axis.range = [Math.min(ranges[0][0], ranges[1][0]), Math.max(ranges[0][1], ranges[1][1])];
    }
    for (const trace of other.data) {
      if (trace.fill && trace.fill !== "none" || shown.has(points(trace))) continue;
      const name = trace.name && `${trace.name}, dotted`;
      plot.data.push({...trace, name, line: {...trace.line, dash: "dot"}, showlegend: trace.showlegend !== false && !names.has(trace.name)});
    }
    return true;
  }

  // The caption names the shown options of the page's selectors.
  function nameShown(figure, overlaid) {
    for (const caption of figure.element.querySelectorAll("[data-common]")) {
      const select = common[Number(caption.dataset.common)], option = s => s.options[s.selectedIndex].text;
      const second = overlaid && select.overlay.value && select.overlay.value !== select.value ? `, dotted ${option(select.overlay)}` : "";
      caption.textContent = `${select.label}: ${option(select)}${second}`;
    }
  }

  function drawNow(figure) {
    const spec = figure.spec = parsed(figure.number);
    const key = figure.selects.map(s => s.value).join(",");
    const plot = plotOf(spec, key);
    nameShown(figure, overlay(figure, plot, key));
    for (const trace in spec.designs) plot.data[trace].customdata ??= Array.from(numbers(spec.designs[trace]), hoverValues);
    const shown = resolved(plot, dark() ? 1 : 0);
    // A label of a point at the edge is written in the margin.
    for (const trace of shown.frames.length ? [] : shown.data) if (/text/.test(trace.mode)) trace.cliponaxis ??= false;
    Object.assign(shown.layout, {template: template(), autosize: !printing, separators: ".\u202f"});
    fitFigure(figure, shown, printing);
    const config = {
      displaylogo: false, ...(narrow() ? {displayModeBar: false} : {}), showSendToCloud: false, plotlyServerURL: "", showTips: false,
      modeBarButtonsToRemove: ["toImage", "select2d", "lasso2d", "sendChartToCloud"],
    };
    const first = !figure.drawn;
    figure.isNarrow = narrow();
    if (!first && spec.brushed) keepBrushes(figure.plot.data[0].dimensions, shown.data[0].dimensions);
    figure.drawn = true;
    const drawn = first || shown.frames.length
      ? Plotly.newPlot(figure.plot, shown.data, shown.layout, config)
          .then(() => shown.frames.length ? Plotly.addFrames(figure.plot, shown.frames) : null)
      : Plotly.react(figure.plot, shown.data, shown.layout, config);
    if (shown.frames.length) drawn.then(() => animate(figure, spec.loop));
    if (first) figure.plot.on("plotly_afterplot", () => partTicks(figure));
    if (first && shown.layout.meta?.jump) figure.plot.on("plotly_click", event => jump(figure, event.points[0].x));
    if (first && parent !== window) figure.plot.on("plotly_click", event => tellDesign(figure, event.points[0]));
    return drawn.then(() => {
      if (first && spec.brushed) watchBrushes(figure);
      setOff(figure);
      partTicks(figure);
      figure.element.dataset.drawn = "true";
    });
  }

  // What hovering over a point shows of a design: its values, kept once for all figures.
  const places = new Map(), values = new Map();
  let known = null;
  function hoverValues(row) {
    if (!known) {
      known = parsed(0);
      Array.from(numbers(known.rows)).forEach((r, i) => places.set(r, i));
      known.columns = known.columns.map(c => numbers(c));
    }
    if (!values.has(row)) values.set(row, known.columns.map(c => c[places.get(row)]));
    return values.get(row);
  }

  // Numbers of a figure's data: a plain array, or base64 of a typed one.
  function numbers(value) {
    if (!isObject(value) || !("bdata" in value)) return value;
    const bytes = Uint8Array.from(atob(value.bdata), c => c.charCodeAt(0));
    return new {f4: Float32Array, f8: Float64Array, i4: Int32Array}[value.dtype](bytes.buffer);
  }

  // Designs within the brushes of parallel coordinates; null as long as the reader has not brushed.
  let picked = null;

  // What the reader has brushed outlives a new drawing.
  function keepBrushes(from, to) {
    const ranges = new Map(from.map(a => [a.name, a.constraintrange]));
    for (const a of to) {
      delete a.constraintrange;
      if (ranges.get(a.name)) a.constraintrange = ranges.get(a.name);
    }
  }

  function watchBrushes(figure) {
    const {brushed} = figure.spec, axes = figure.spec.plot.data[0].dimensions;
    const values = new Map(axes.map(a => [a.name, Array.from(numbers(a.values))]));
    const within = (range, v) => (Array.isArray(range[0]) ? range : [range]).some(([low, high]) => low <= v && v <= high);
    const kept = () => {
      const limits = figure.plot.data[0].dimensions.filter(a => a.constraintrange && a.constraintrange.length);
      return [brushed.designs.map((_, i) => i).filter(i =>
        limits.every(a => within(Array.from(a.constraintrange), values.get(a.name)[i]))), limits.length > 0];
    };
    showBrushed(figure, kept()[0]);
    figure.plot.on("plotly_restyle", () => {
      const [rows, any] = kept();
      showBrushed(figure, rows);
      picked = any ? new Set(rows.map(i => brushed.designs[i])) : null;
      for (const other of figures) if (other.drawn) setOff(other);
      for (const row of document.querySelectorAll("tr[data-design]"))
        row.classList.toggle("out", picked !== null && !picked.has(Number(row.dataset.design)));
    });
  }

  // A page that shows this one within itself learns which design was clicked.
  function tellDesign(figure, point) {
    const rows = figure.spec.designs[point.curveNumber];
    if (rows) parent.postMessage({design: Number(numbers(rows)[point.pointIndex ?? point.pointNumber])}, location.origin);
  }

  // Points of designs that are not picked fade.
  function setOff(figure) {
    for (const trace in figure.spec.designs) {
      if (!["scatter", "bar"].includes(figure.plot.data[trace]?.type)) continue;
      const rows = Array.from(numbers(figure.spec.designs[trace]));
      const points = picked && rows.flatMap((row, i) => picked.has(row) ? [i] : []);
      if (points || figure.faded) Plotly.restyle(figure.plot, {selectedpoints: [points]}, [Number(trace)]);
    }
    figure.faded = picked !== null;
  }

  const shownNumber = v => typeof v !== "number" || Number.isInteger(v) ? String(v)
    : Math.abs(v) < 1e-4 ? v.toExponential(3).replace(/\.?0*e/, "e") : String(Math.abs(v) < 1e4 ? Number(v.toPrecision(4)) : Math.round(v));
  const element = (name, text, more) => Object.assign(document.createElement(name), text === undefined ? {} : {textContent: text}, more);

  const withUnbrokenUnits = name => name.replace(/\[[^\]]*\]/g, unit => unit.replaceAll(" ", "\u00a0"));

  function showBrushed(figure, rows) {
    const {title, columns, values, designs, shown} = figure.spec.brushed;
    const columnValues = values.map(v => numbers(v));
    const box = figure.element.querySelector(".brushed");
    const caption = element("div", undefined, {className: "caption"});
    const save = element("button", "CSV", {type: "button", className: "csv"});
    save.addEventListener("click", () => {
      const cell = v => /[",\n]/.test(String(v)) ? `"${String(v).replaceAll('"', '""')}"` : String(v);
      const lines = [columns, ...rows.map(i => columnValues.map(c => c[i]))].map(line => line.map(cell).join(","));
      const link = element("a", undefined, {download: figure.spec.name + "-selected.csv"});
      link.href = URL.createObjectURL(new Blob([lines.join("\r\n") + "\r\n"], {type: "text/csv"}));
      link.click();
      URL.revokeObjectURL(link.href);
    });
    caption.append(element("h3", `${title}: ${rows.length} of ${designs.length}`), save);
    const head = element("tr"), body = element("tbody"), table = element("table");
    const numeric = columnValues.map(c => typeof c[0] === "number");
    columns.forEach((c, k) => head.append(element("th", withUnbrokenUnits(c), {className: numeric[k] ? "n" : "", scope: "col"})));
    for (const i of rows.slice(0, shown)) {
      const row = element("tr");
      columnValues.forEach((c, k) => row.append(element("td", shownNumber(c[i]), {className: numeric[k] ? "n" : "s"})));
      body.append(row);
    }
    const top = element("thead");
    top.append(head);
    table.append(top, body);
    const scroll = element("div", undefined, {className: "scroll"});
    scroll.append(table);
    box.replaceChildren(caption, scroll);
    if (rows.length > shown) box.append(element("p", `${rows.length - shown} more ${rows.length - shown > 1 ? "rows are" : "row is"} in the CSV file.`, {className: "note"}));
  }

  // Plotly rejects a promise of its own, without a reason, when a pause interrupts an animation: no error.
  addEventListener("unhandledrejection", event => { if (event.reason === undefined) event.preventDefault(); });

  // Start and stop come from the figure's own buttons; an animation at its end begins again.
  function animate(figure, loop) {
    let playing = null;
    figure.plot.on("plotly_buttonclicked", event => {
      playing = event.button.args[0] === null ? event.button.args[1] : null;
    });
    figure.plot.on("plotly_sliderstart", () => { playing = null; });
    // Plotly ends its own loop right after this event, so the next round has to wait for it.
    figure.plot.on("plotly_animated", () => setTimeout(() => {
      if (playing && loop) Plotly.animate(figure.plot, null, {...playing, fromcurrent: false}).catch(() => {});
    }));
  }

  // A click on an instant shows it in the drawings of motions, for the design and scenario that were clicked.
  function jump(from, time) {
    for (const figure of figures) {
      if (!lines[figure.number].includes('"times"')) continue;
      const selects = figure.selects.length === from.selects.length ? figure.selects : [];
      const other = selects.some((s, i) => s.value !== from.selects[i].value);
      selects.forEach((s, i) => { s.value = from.selects[i].value; });
      Promise.resolve(other || !figure.drawn ? draw(figure) : null).then(() => {
        const times = figure.plot.layout.meta.times;
        const nearest = times.reduce((best, t, i) => Math.abs(t - time) < Math.abs(times[best] - time) ? i : best, 0);
        const still = {frame: {duration: 0, redraw: true}, transition: {duration: 0}, mode: "immediate"};
        return Plotly.animate(figure.plot, [String(nearest)], still);
      }).catch(() => {});
      figure.element.scrollIntoView({behavior: "smooth", block: "center"});
    }
  }

  // Selectors of the whole page, each with one of what is drawn in dotted lines.
  const common = [...document.querySelectorAll("#common > span")].map(element => {
    const [select, overlay] = element.querySelectorAll("select");
    select.label = select.parentElement.firstChild.data.trim();
    select.overlay = overlay;
    return select;
  });

  for (const element of document.querySelectorAll("figure")) {
    const figure = {
      element, plot: element.querySelector(".plot"), drawn: false,
      number: Number(element.dataset.source),
      selects: [...element.querySelectorAll(".choices > *")].map(e =>
        "common" in e.dataset ? common[Number(e.dataset.common)] : e.querySelector("select")),
    };
    element.querySelector(".svg").addEventListener("click", () =>
      (figure.drawn ? Promise.resolve() : draw(figure)).then(() => Plotly.downloadImage(asShown(figure),
        {format: "svg", filename: figure.spec.name, width: figure.plot.clientWidth, height: figure.plot.clientHeight})));
    for (const select of figure.selects)
      for (const some of [select, select.overlay ?? []].flat()) some.addEventListener("change", () => { if (figure.drawn) draw(figure); });
    figures.push(figure);
  }
  // Figures with other options follow by name, as far as they have the option.
  for (const select of common) select.addEventListener("change", () => {
    const name = select.options[select.selectedIndex].text;
    for (const own of figures.flatMap(f => f.selects).filter(s => !common.includes(s))) {
      const option = [...own.options].find(o => o.text === name);
      if (own.parentElement.firstChild.data.trim() !== select.label || !option || option.selected) continue;
      option.selected = true;
      own.dispatchEvent(new Event("change"));
    }
  });

  // Figures are drawn shortly before they come into view: a long page opens at once.
  const watcher = new IntersectionObserver(entries => {
    for (const entry of entries) {
      const figure = figures.find(f => f.element === entry.target);
      if (entry.isIntersecting && !figure.drawn) { watcher.unobserve(entry.target); draw(figure); }
    }
  }, {rootMargin: "600px"});
  figures.forEach(f => watcher.observe(f.element));

  // A figure follows the width of its place also where the window keeps its size, but not while the place is hidden. On a
  // narrow screen, or after one, it is fitted anew, and once more, as Plotly leaves a legend where its former margin was.
  const refit = figure => {
    if (figure.fitted === figure.plot.clientWidth) return;
    figure.fitted = figure.plot.clientWidth;
    Promise.resolve(draw(figure)).then(() => draw(figure));
  };
  const follower = new ResizeObserver(entries => {
    for (const {target} of entries) {
      if (printing || !target._fullLayout || [0, target._fullLayout.width].includes(target.clientWidth)) continue;
      const figure = figures.find(f => f.plot === target);
      if (narrow() || figure.isNarrow) refit(figure);
      else Plotly.Plots.resize(target);
    }
  });
  figures.forEach(f => follower.observe(f.plot));

  const redraw = () => figures.filter(f => f.drawn).forEach(draw);
  const button = document.getElementById("theme");
  const label = () => { button.textContent = dark() ? "Light" : "Dark"; };
  button.addEventListener("click", () => { root.dataset.theme = dark() ? "light" : "dark"; label(); redraw(); });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { label(); redraw(); });
  // On paper a decision is one page, the first part, other studies are their results; the reader may ask for all parts.
  const whole = document.getElementById("paper"), {paper: inShort} = root.dataset;
  whole?.addEventListener("change", () => { root.dataset.paper = whole.checked ? "whole" : inShort; });
  const onPaper = element => {
    const section = element.closest("section"), {paper} = root.dataset;
    return !whole || paper === "whole" || (paper === "first" ? section.matches(":first-of-type") : section.dataset.onRequest === undefined);
  };
  addEventListener("beforeprint", () => {
    printing = true;
    root.classList.add("printing");
    for (const select of document.querySelectorAll("section select"))
      select.parentElement.dataset.option = select.options[select.selectedIndex].text;
    for (const table of [...document.querySelectorAll(".scroll > table")].filter(onPaper)) {
      table.closest(".table")?.classList.toggle("beyond-paper", table.offsetWidth > 2 * 686);
      table.classList.toggle("tight", table.offsetWidth > 1.2 * 686);
      if (table.offsetWidth > 686) table.style.zoom = 686 / table.offsetWidth;
    }
    fitAnswer();
    figures.filter(f => onPaper(f.element)).forEach(draw);
  });
  addEventListener("afterprint", () => {
    printing = false;
    root.classList.remove("printing");
    for (const element of document.querySelectorAll(".scroll > table, #overview-1 > *")) element.style.zoom = "";
    redraw();
  });
  label();

  // No line breaks between a number and its unit, nor within a unit; commands stay as they are, to be copied.
  const units = new Set([...document.querySelector("main").textContent.matchAll(/\[([^\[\],]*[a-z%][^\[\],]*)\]/gi)].map(([, unit]) => unit));
  const withUnit = new RegExp(`(\\d) (${[...units].sort((a, b) => b.length - a.length).map(unit => unit.replace(/[^\w ]/g, "\\$&")).join("|") || "(?!)"})(?![\\w/^])`, "g");
  const texts = document.createTreeWalker(document.querySelector("main"), NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const text = texts.currentNode;
    if (/\d [%a-zµ°]/i.test(text.data) && !text.data.includes("designopt ") && !text.parentElement.closest("pre"))
      text.data = text.data.replace(withUnit, words => words.replaceAll(" ", "\u00a0")).replace(/(\d) (?=%|[a-zµ°]{1,4}(?![a-z]))/gi, "$1\u00a0");
    if (text.parentElement.tagName === "TH") text.data = withUnbrokenUnits(text.data);
  }

  // Nor within a unit or a limit beside a name.
  for (const cell of document.querySelectorAll("main :is(th, td:first-child)"))
    if (cell.childElementCount === 0) cell.textContent = cell.textContent.replace(/\[[^\]]*\]|\([≤≥=] [^)]*\)/g, unit => unit.replaceAll(" ", "\u00a0"));

  // Nor within an option of a command, nor before the exponent of a number.
  const nodes = document.createTreeWalker(document.querySelector("main"), NodeFilter.SHOW_TEXT), toPart = [];
  while (nodes.nextNode()) if (/designopt |\de-\d/.test(nodes.currentNode.data)) toPart.push(nodes.currentNode);
  for (const text of toPart.filter(node => !node.parentElement.closest("pre, script, select, td.n"))) {
    const parts = text.data.split(/(--[a-z-]+|[\d.]+e-\d+)/).map((part, i) => i % 2 ? Object.assign(document.createElement("span"), {className: "option", textContent: part}) : part);
    text.replaceWith(...parts);
  }

  // The table of contents shows where the reader is.
  const links = new Map([...document.querySelectorAll("nav a")].map(a => [a.hash.slice(1), a]));
  const visible = new Set(), sections = [...document.querySelectorAll("main > section")];
  const reader = new IntersectionObserver(entries => {
    for (const entry of entries) visible[entry.isIntersecting ? "add" : "delete"](entry.target);
    const first = sections.find(section => visible.has(section));
    for (const [id, link] of links) link.classList.toggle("here", id === first?.id);
  }, {rootMargin: "-20% 0px -70% 0px"});
  sections.forEach(section => reader.observe(section));
})();

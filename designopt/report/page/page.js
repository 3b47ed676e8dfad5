"use strict";
(() => {
  const {THEMED, CATEGORIES} = JSON.parse(document.getElementById("colours").textContent);
  const root = document.documentElement;
  const figures = [];
  let printing = false;

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

  // On a narrow screen a time slider is below its buttons, names of parallel axes are tilted, scales of decades have
  // few labels, and labels of points turn inwards where they would leave the figure.
  const narrow = () => !printing && innerWidth <= 640;
  function fitNarrow(plot, width, height) {
    // A drawing in space is seen from further away.
    const eye = plot.layout.scene?.camera?.eye;
    for (const axis in eye ?? {}) eye[axis] *= plot.layout.scene.aspectmode === "manual" ? 1.2 : 1.5;
    // Narrow panels have few ticks, and names of many columns stand upright.
    for (const axis of axesOf(plot.layout, "x")) if (axis.domain?.[1] - axis.domain?.[0] < 0.35 && !axis.tickvals) axis.nticks = 3;
    for (const axis of axesOf(plot.layout, "x")) if (axis.tickangle && axis.tickvals?.length > 5) axis.tickangle = -90;
    for (const axis of axesOf(plot.layout, "x")) if (axis.type === "log" && !axis.tickvals) axis.nticks = 4;
    for (const label of plot.layout.annotations ?? []) {
      const [low, high] = (label.showarrow && plot.layout[String(label.xref).replace("x", "xaxis")]?.range) || [0, 0];
      const right = (width - 110) * (high - label.x) / (high - low), left = width - 110 - right;
      const needed = Math.abs(label.ax) + 7 * Math.max(...label.text.split("<br>").map(line => line.length));
      const inwards = label.ax > 0 ? right < needed && left > right : left < needed && right > left;
      if (!label.showarrow && 7.5 * label.text.length > width - 90) label.font = {...label.font, size: 10};
      if (["left", "right"].includes(label.xanchor) && inwards)
        Object.assign(label, {ax: -label.ax, xanchor: label.ax > 0 ? "right" : "left"});
    }
    partLabels(plot.layout, width, height);
    const lower = (control, by) => { control.pad = {...control.pad, t: (control.pad?.t ?? 0) + by}; };
    for (const menu of plot.layout.updatemenus ?? []) lower(menu, 16);
    for (const slider of plot.layout.sliders ?? []) { Object.assign(slider, {x: 0, len: 1}); lower(slider, 64); }
    for (const trace of plot.data) {
      if (trace.type !== "parcoords") continue;
      Object.assign(trace, {labelangle: -35, line: {...trace.line, showscale: false}});
      for (const dimension of trace.dimensions) if (dimension.label.length <= 20) dimension.label = dimension.label.replaceAll("<br>", " ");
      Object.assign(plot.layout, {margin: {...plot.layout.margin, l: plot.layout.margin.l > 80 ? plot.layout.margin.l : 56, r: 72, t: 110}});
    }
  }

  // Designs are named by their labels without their values if one name is longer than the legend, and a long label is cut.
  function shortenNames({data}, width) {
    const letters = Math.floor((width - 110) / 7), named = data.filter(trace => trace.name), isLong = ({name}) => name.length > letters;
    if (named.some(isLong)) for (const trace of named) [trace.name] = trace.name.split(": ");
    for (const trace of named.filter(isLong)) trace.name = `${trace.name.slice(0, letters - 1)}…`;
  }

  const axesOf = (layout, letter) => Object.keys(layout).filter(name => name.startsWith(`${letter}axis`)).map(name => layout[name]);

  // The text in lines of at most so many letters, or of one word or unit.
  function inLines(text, letters) {
    const lines = [];
    for (const word of text.split(/ (?![^[]*\])/)) {
      if (lines.length && `${lines.at(-1)} ${word}`.length <= letters) lines.push(`${lines.pop()} ${word}`);
      else lines.push(word);
    }
    return lines.join("<br>");
  }

  // Names beside a plot that would take more than a third of its width are broken into lines, and small where a sheet has
  // no room for these; titles below axes that are shorter than they are broken, too. A figure of many names becomes as high
  // as their lines.
  function fitNames(element, {data, layout}, width, highest) {
    let longest = 0;
    for (const axis of axesOf(layout, "y")) {
      const strings = names => (Array.isArray(names) ? names : []).filter(name => typeof name === "string");
      let names = axis.ticktext ? strings(axis.ticktext) : axis.type === "category" ? [...new Set(data.flatMap(trace => strings(trace.y)))] : [];
      if (7 * Math.max(0, ...names.map(name => name.length)) > width / 3) {
        const broken = names.map(name => inLines(name, Math.max(18, Math.floor(width / 21))));
        Object.assign(axis, axis.ticktext ? {ticktext: broken} : {tickmode: "array", tickvals: names, ticktext: broken});
        names = broken;
        const lines = Math.max(...names.map(name => name.split("<br>").length));
        const needed = size => size * lines * names.length + 130;
        element.style.height = `${Math.min(Math.max(element.clientHeight, needed(18)), highest)}px`;
        if (needed(15) > highest) axis.tickfont = {...axis.tickfont, size: 9};
      }
      longest = Math.max(longest, ...names.flatMap(name => name.split("<br>")).map(line => line.length));
    }
    for (const {title, domain: [low, high] = [0, 1]} of axesOf(layout, "x")) {
      const letters = Math.floor((high - low) * (width - 90 - 7 * longest) / 7.5);
      const lines = title?.text?.split("<br>") ?? [];
      if (lines.some(line => line.length > letters)) Object.assign(title, {text: lines.map(line => inLines(line, letters)).join("<br>"), font: {size: 12}});
    }
  }

  // Titles above panels side by side that would meet or leave the figure are broken into lines, after a comma if that is
  // enough.
  function fitTitles({annotations = []}, width) {
    const titles = annotations.filter(note => !note.showarrow && ["left", "center"].includes(note.xanchor) && /paper|domain/.test(note.xref));
    for (const title of titles) {
      const isLeft = title.xanchor === "left", gaps = titles.filter(other => other.y === title.y).map(other => other.x - title.x);
      const room = Math.min(isLeft ? 1 - title.x : 1, ...gaps.filter(gap => isLeft ? gap > 0 : gap).map(Math.abs));
      // Names at the left, above each other, are small first: their lines need the gap between the panels.
      if (isLeft && 7.5 * title.text.length > room * (width - 90)) Object.assign(title, {align: "left", font: {...title.font, size: 10}});
      const letters = Math.floor(room * (width - 90) / (0.6 * (title.font?.size ?? 13)));
      const isShort = text => text.replace(/<[^>]*>/g, "").length <= letters;
      title.text = title.text.split("<br>").map(line => {
        if (isShort(line)) return line;
        return inLines(line.split(", ").every(isShort) ? line.replace(/(?<!,) /g, "\u00a0") : line, letters);
      }).join("<br>");
    }
  }

  // Texts in the cells of a map, and gaps between them, need cells that are wide enough.
  function fitCells(plot, width) {
    for (const map of plot.data) {
      if (map.type !== "heatmap") continue;
      const columns = map.z.shape ? Number(map.z.shape.split(",").at(-1)) : map.z[0].length, cell = (width - 150) / columns;
      if (cell < 7) Object.assign(map, {xgap: 0, ygap: 0});
      if (cell < 7 * Math.max(0, ...(map.text ?? []).flat().map(text => text?.length ?? 0))) map.texttemplate = "";
    }
  }

  // A drawing in space to scale fills what its figure has beside a colour bar and the labels of the axes: Plotly's view is
  // 2 units high in parallel projection, and in perspective as high as the distance times 2 tan(45°/2), here at its nearest.
  function fitScene({data, layout: {scene, sliders}}, width, height) {
    if (scene?.aspectmode !== "manual" || !scene.camera) return;
    const {eye, center: {x, y, z} = {x: 0, y: 0, z: 0}, up = {x: 0, y: 0, z: 1}, projection} = scene.camera;
    const cross = ([a, b, c], [d, e, f]) => [b * f - c * e, c * d - a * f, a * e - b * d];
    const unit = vector => vector.map(v => v / Math.hypot(...vector));
    const forward = [x - eye.x, y - eye.y, z - eye.z], right = unit(cross(forward, [up.x, up.y, up.z])), above = unit(cross(right, forward));
    const extent = direction => direction.reduce((sum, v, i) => sum + Math.abs(v) * scene.aspectratio["xyz"[i]], 0);
    const shown = height - (sliders?.length && !printing ? (width < 500 ? 240 : 170) : 70);
    const room = width - Math.min(200, (width < 500 ? 0.42 : 0.34) * width) - (data.some(trace => [trace, trace.line, trace.marker].some(part => part?.colorbar)) ? 100 : 0);
    const needed = Math.max(extent(right) / room, extent(above) / (shown - 70)) * shown; // over the height of the figure
    // An axis has as many labels as it has room for; a very short one has one, in its middle.
    const longest = Math.max(...Object.values(scene.aspectratio)), pixels = Math.min(room, shown - 70);
    for (const letter of "xyz") {
      const axis = scene[`${letter}axis`] ??= {}, labels = Math.floor(pixels * scene.aspectratio[letter] / longest / 22);
      if (labels < 2 && axis.range) Object.assign(axis, {tickvals: [Number(((axis.range[0] + axis.range[1]) / 2).toPrecision(1))]});
      else if (labels < 7) Object.assign(axis, {nticks: Math.max(2, Math.min(labels, width < 500 ? 4 : 7))});
      if (width < 500) Object.assign(axis, {tickfont: {size: 10}, title: {...axis.title, font: {size: 12}}});
    }
    if (projection?.type === "orthographic") for (const letter of "xyz") scene.aspectratio[letter] *= 2 / needed;
    else for (const letter of "xyz")
      eye[letter] *= Math.max(0.6, (needed / (2 * Math.tan(Math.PI / 8)) + extent(unit(forward)) / 2) / Math.hypot(...forward));
  }

  // The widths of the entries of a legend above a plot, and its rows in a figure this wide.
  function legendEntries({data, layout: {legend, showlegend}}) {
    if (showlegend === false || legend?.orientation !== "h") return [];
    const entries = new Set(data.filter(t => t.name && t.showlegend !== false).map(t => t.name));
    return entries.size < 2 && !data.some(t => t.showlegend) ? [] : [...entries].map(name => 42 + 7 * name.length);
  }
  function legendRows(plot, width) {
    let rows = 0, used = width;
    for (const needed of legendEntries(plot)) {
      if (used + needed > width - 110) [rows, used] = [rows + 1, 0];
      used += needed;
    }
    return rows;
  }

  // A legend of many rows makes a figure higher on a narrow screen, on paper or beside the answer, so that its plot keeps
  // its height.
  function fitLegend(element, plot, highest) {
    const rows = legendRows(plot, element.clientWidth);
    if (rows <= 2) return;
    element.style.height = `${Math.min(element.clientHeight + 27 * (rows - 2), highest)}px`;
    plot.layout.margin = {...plot.layout.margin, t: Math.max(plot.layout.margin?.t ?? 0, 27 * rows + 16)};
  }

  // Panels of several columns stand in two on a narrow screen; `layout.meta.panels` has their columns, gaps and margins.
  function inTwoColumns(layout, plot) {
    const {columns, gap, margin} = layout.meta.panels, titles = layout.annotations;
    const rowHeight = (plot.clientHeight - margin) / Math.ceil(titles.length / columns), rows = Math.ceil(titles.length / 2);
    const inner = rows * rowHeight, space = gap / inner, height = (1 - space * (rows - 1)) / rows;
    plot.style.height = `${inner + margin}px`;
    titles.forEach((title, i) => {
      const left = i % 2 ? 0.6 : 0, top = 1 - Math.floor(i / 2) * (height + space), number = i ? i + 1 : "";
      Object.assign(layout[`xaxis${number}`], {domain: [left, left + 0.4], showticklabels: i + 2 >= titles.length, title: i + 2 < titles.length ? {} : layout[`xaxis${titles.length}`].title});
      layout[`yaxis${number}`].domain = [top - height, top];
      Object.assign(title, {x: left, y: top});
    });
    layout.legend.y = 1 + 0.5 * space;
  }

  // Panels of pairs stand below one another on a narrow screen, each with its titles, the list `maps`.
  function stackMaps(layout, plot, maps) {
    const panel = 190, gap = 66, inner = maps.length * (panel + gap) - gap;
    maps.forEach(([across, up], i) => {
      const number = i ? i + 1 : "", top = 1 - i * (panel + gap) / inner;
      Object.assign(layout[`xaxis${number}`], {domain: [0, 1], showticklabels: true, title: {text: across}});
      Object.assign(layout[`yaxis${number}`], {domain: [Math.max(0, top - panel / inner), top], showticklabels: true, title: {text: up}});
    });
    plot.style.height = `${inner + 116}px`;
  }

  // The bar of colours of a map lies above its plot and legend on a narrow screen.
  function barAbove(plot, {data, layout}) {
    const bar = layout.coloraxis?.colorbar ?? data.find(t => t.colorbar)?.colorbar;
    const entries = legendEntries({data, layout}), columns = Math.max(1, Math.floor((plot.clientWidth - 110) / Math.max(...entries)));
    const rows = 30 * Math.ceil(entries.length / columns), top = rows + 74, {b: bottom = 56} = layout.margin;
    const inner = plot.clientHeight - bottom - (layout.margin.t ?? 60);
    plot.style.height = `${inner + top + bottom}px`;
    layout.margin = {...layout.margin, t: top};
    layout.legend = {...layout.legend, y: 1 + 6 / inner};
    Object.assign(bar, {orientation: "h", x: 0.5, xanchor: "center", y: 1 + (rows + 26) / inner, yanchor: "bottom", thickness: 12, nticks: 4});
    bar.title.side = "top";
  }

  // A label of a point that would cover another one or leave its plot stands on the other side or further away, or goes:
  // markers are in the legend.
  function partLabels(layout, width, height) {
    const {t = 100, b = 80} = layout.margin ?? {}, boxes = [], room = {x: width - 110, y: height - t - b};
    const place = (value, {range: [low, high], domain: [start, end] = [0, 1]}) => start + (end - start) * (value - low) / (high - low);
    for (const label of layout.annotations ?? []) {
      const [across, up] = ["x", "y"].map(letter => layout[String(label[`${letter}ref`]).replace(letter, `${letter}axis`)]);
      if (!label.showarrow || !across?.range || !up?.range) continue;
      const lines = label.text.split("<br>"), wide = 7 * Math.max(...lines.map(line => line.length)), high = 16 * lines.length;
      const left = room.x * place(label.x, across) + label.ax - (label.xanchor === "right" ? wide : 0);
      const top = ay => ay - high / 2 - room.y * place(label.y, up), [start, end] = up.domain ?? [0, 1];
      const isInside = ay => -room.y * end <= top(ay) && top(ay) + high <= -room.y * start;
      const [first, last] = across.domain ?? [0, 1], isBeside = left < room.x * first - (first ? 0 : 60) || left + wide > room.x * last + (last < 1 ? 0 : 20);
      const isFree = ay => !isBeside && isInside(ay) && boxes.every(box => left + wide < box.left || box.left + box.wide < left || top(ay) + high < box.top || box.top + box.high < top(ay));
      const free = [1, -1, 2.5, -2.5].map(times => times * label.ay).find(isFree);
      if (free === undefined) label.visible = false;
      else {
        label.ay = free;
        boxes.push({left, top: top(free), wide, high});
      }
    }
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

  // Curves or points in one pair of axes of numbers, not drawn to scale, with a short legend.
  function isLow({data, layout}) {
    return legendRows({data, layout}, 680) <= 2 && !Object.keys(layout).some(name => /^[xy]axis\d/.test(name)) && layout.yaxis?.type !== "category"
      && !layout.yaxis?.scaleanchor
      && data.every(t => (t.type ?? "scatter") === "scatter" && typeof t.y?.[0] !== "string");
  }

  // A figure that is lower on paper than on the screen has smaller names and fewer ticks, and many panels two stacks.
  function fitSheet({data, layout}, height) {
    const panels = axesOf(layout, "y"), titles = layout.annotations ?? [];
    if (panels.length > 10 && !layout.xaxis2 && titles.length === panels.length) inTwoStacks(data, layout, panels, height);
    for (const note of titles) note.font = {...note.font, size: 9};
    for (const axis of panels) {
      const names = axis.ticktext ?? new Set(data.flatMap(t => Array.isArray(t.y) ? t.y : []).filter(y => typeof y === "string"));
      const count = names.length ?? names.size;
      if (count) axis.tickfont = {size: Math.max(5, Math.min(9, Math.floor((height - 100) / count) - 1))};
      else if (!axis.tickvals) Object.assign(axis, {nticks: 3, tickfont: {size: 9}});
    }
  }

  // Panels above each other over one axis stand in two stacks side by side, with room for their titles between them.
  function inTwoStacks(data, layout, panels, height) {
    const rows = Math.ceil(panels.length / 2), gap = Math.max(0.3 / rows, 17 / (height - 100)), size = (1 - gap * (rows - 1)) / rows, right = 0.56;
    Object.assign(layout.xaxis, {domain: [0, 1 - right], anchor: `y${rows}`});
    layout.xaxis2 = {...layout.xaxis, domain: [right, 1], anchor: `y${panels.length}`, matches: "x"};
    panels.forEach((axis, k) => {
      const isRight = k >= rows, top = 1 - (k - (isRight ? rows : 0)) * (size + gap);
      Object.assign(axis, {domain: [Math.max(0, top - size), top], anchor: isRight ? "x2" : "x"});
      Object.assign(layout.annotations[k], {x: isRight ? right : 0, y: top});
    });
    for (const trace of data) if (Number((trace.yaxis ?? "y").slice(1)) > rows) trace.xaxis = "x2";
    const shapes = layout.shapes ?? [];
    layout.shapes = [...shapes, ...shapes.filter(shape => shape.xref === "x").map(shape => ({...shape, xref: "x2"}))];
  }

  const PAPER = 985; // pixels of a page of paper, without a margin for rounding
  // What a sheet leaves for a plot beside its caption and note, and beside a short text that heads it.
  function heightOnSheet({element, plot}) {
    const top = e => e.getBoundingClientRect().top, above = top(element) - top(element.closest("section"));
    return PAPER - (element.offsetHeight - plot.offsetHeight) - (above < PAPER / 3 ? above : 0);
  }

  function drawNow(figure) {
    const spec = figure.spec = parsed(figure.number);
    const key = figure.selects.map(s => s.value).join(",");
    const plot = plotOf(spec, key);
    nameShown(figure, overlay(figure, plot, key));
    for (const trace in spec.designs) plot.data[trace].customdata ??= Array.from(numbers(spec.designs[trace]), hoverValues);
    const shown = resolved(plot, dark() ? 1 : 0);
    figure.plot.style.height = figure.height ??= figure.plot.style.height;
    const low = printing && (figure.element.closest("#overview-1") || root.dataset.paper === "results" && isLow(shown));
    if (low) figure.plot.style.height = "225px"; // three on a sheet
    const sheet = printing ? heightOnSheet(figure) : Infinity, tall = parseInt(figure.height) > sheet;
    if (tall) figure.plot.style.height = `${sheet}px`;
    const maps = narrow() && shown.layout.meta?.maps;
    if (maps?.length > 1) stackMaps(shown.layout, figure.plot, maps);
    if (narrow()) fitNarrow(shown, figure.plot.clientWidth, figure.plot.clientHeight);
    if (narrow() || printing) shortenNames(shown, printing ? 680 : figure.plot.clientWidth);
    // So do those of many axes side by side on paper; very many have small names.
    const parallel = shown.data.find(trace => trace.type === "parcoords"), parallels = parallel?.dimensions.length;
    if (parallels > 10) parallel.labelfont = {...parallel.labelfont, size: 10};
    if (printing && parallels > 6) {
      parallel.labelangle = parallels > 10 ? -50 : -25;
      shown.layout.margin = {...shown.layout.margin, r: 90, t: 90};
    }
    // A label of a point at the edge is written in the margin.
    for (const trace of shown.frames.length ? [] : shown.data) if (/text/.test(trace.mode)) trace.cliponaxis ??= false;
    fitNames(figure.plot, shown, printing ? 680 : figure.plot.clientWidth, sheet);
    fitCells(shown, printing ? 680 : figure.plot.clientWidth);
    fitScene(shown, printing ? 680 : figure.plot.clientWidth, figure.plot.clientHeight);
    if (narrow() || (printing ? !low : figure.element.closest("#overview-1"))) fitLegend(figure.plot, shown, sheet);
    if (maps) barAbove(figure.plot, shown);
    if (narrow() && shown.layout.meta?.panels?.columns > 2) inTwoColumns(shown.layout, figure.plot);
    // On paper the numbers beside narrow panels are small: they stand in the gaps between them.
    if (printing && axesOf(shown.layout, "x").some(({domain: [low, high] = [0, 1]}) => high - low < 0.35))
      for (const axis of axesOf(shown.layout, "y")) axis.tickfont = {...axis.tickfont, size: 9};
    fitTitles(shown.layout, printing ? 680 : figure.plot.clientWidth);
    for (const axis of axesOf(shown.layout, "x")) if (axis.type === "log") axis.tickangle ??= 0; // `partTicks` makes room
    shown.layout.template = template();
    shown.layout.autosize = !printing;
    // A page of paper: the browser does not ask figures to fit it, and controls leave their room to the plot.
    if (printing) Object.assign(shown.layout, {width: 680, height: figure.plot.clientHeight, updatemenus: [], sliders: []});
    if (tall) fitSheet(shown, sheet);
    // Without a legend, titles of panels or buttons above it, a plot begins below its caption.
    const above = legendRows(shown, figure.plot.clientWidth) || shown.layout.annotations?.length || shown.data.some(t => t.type === "parcoords");
    if ((narrow() || printing) && !above && shown.layout.margin?.t > 24) shown.layout.margin = {...shown.layout.margin, t: 24};
    // Text in low figures is as small as that around them; a title of a panel needs room above it.
    if (low) {
      Object.assign(shown.layout.template.layout.font, {size: 11});
      shown.layout.margin = {...shown.layout.margin, t: shown.layout.annotations?.some(note => !note.showarrow) ? 26 : 10, b: 30};
    }
    shown.layout.separators = ".\u202f";
    const config = {
      displaylogo: false, ...(narrow() ? {displayModeBar: false} : {}), showSendToCloud: false, plotlyServerURL: "", showTips: false,
      modeBarButtonsToRemove: ["select2d", "lasso2d", "sendChartToCloud"],
      toImageButtonOptions: {format: "svg", filename: spec.name},
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

  // A label of a log axis that would touch another one is hidden; powers of ten stay as far as they have room.
  function partTicks({plot}) {
    const isPower = text => Math.abs(text.__data__.x - Math.round(text.__data__.x)) < 1e-9;
    const ids = Object.values(plot._fullLayout).filter(axis => axis?.type === "log" && axis._id).map(axis => axis._id);
    const texts = ids.flatMap(id => [...plot.querySelectorAll(`.${id}tick text`)]), shown = [];
    for (const text of texts) text.style.visibility = "";
    for (const text of [...texts.filter(isPower), ...texts.filter(text => !isPower(text))]) {
      const {left, right, top, bottom} = text.getBoundingClientRect();
      if (shown.every(box => right + 3 < box.left || box.right + 3 < left || bottom < box.top + 3 || box.bottom < top + 3)) shown.push({left, right, top, bottom});
      else text.style.visibility = "hidden";
    }
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
      (figure.drawn ? Promise.resolve() : draw(figure)).then(() => Plotly.downloadImage(figure.plot,
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

  // A figure follows the width of its place also where the window keeps its size. On a narrow screen, or after one, it is
  // fitted anew, and once more, as Plotly leaves a legend where its former margin was.
  const refit = figure => {
    if (figure.fitted === figure.plot.clientWidth) return;
    figure.fitted = figure.plot.clientWidth;
    Promise.resolve(draw(figure)).then(() => draw(figure));
  };
  const follower = new ResizeObserver(entries => {
    for (const {target} of entries) {
      if (printing || !target._fullLayout || target.clientWidth === target._fullLayout.width) continue;
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
  // The figure of the answer takes what its words and tables leave of a page; where that is too little they shrink.
  function fitAnswer() {
    const answer = document.getElementById("overview-1");
    const [least, most] = [210, 320], others = answer ? [...answer.children].filter(e => e.matches(".words, .tables, .note")) : [];
    const left = () => PAPER - answer.getBoundingClientRect().bottom + document.querySelector("main").getBoundingClientRect().top;
    for (const element of others) element.style.zoom = "";
    root.style.setProperty("--paper-height", `${least}px`);
    for (let zoom = 0.95; answer?.querySelector("figure") && left() < 0 && zoom > 0.7; zoom -= 0.05)
      for (const element of others) element.style.zoom = zoom;
    if (answer) root.style.setProperty("--paper-height", `${Math.min(most, least + Math.max(left(), 0))}px`);
  }
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
  const withUnit = new RegExp(`(\\d) (${[...units].map(unit => unit.replace(/[^\w ]/g, "\\$&")).join("|") || "(?!)"})(?![\\w/^])`, "g");
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

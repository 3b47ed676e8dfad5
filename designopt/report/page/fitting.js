"use strict";
// Fits figures to the width of a narrow screen and to a sheet of paper.
const {isNarrow, fitFigure, fitAnswer, partTicks, asShown} = (() => {
  const SHEET_WIDTH = 680, SHEET_HEIGHT = 985; // pixels of a sheet of paper, without a margin for rounding
  const root = document.documentElement;

  const isNarrow = printing => !printing && innerWidth <= 640;

  // Fits what `shown` draws, with its template, to the width and the height of the place of `figure` on the screen or on paper.
  function fitFigure(figure, shown, printing) {
    const {element, plot} = figure, {data, layout} = shown, narrow = isNarrow(printing);
    plot.style.height = figure.height ??= plot.style.height;
    const low = printing && (element.closest("#overview-1") || root.dataset.paper === "results" && isLow(shown));
    if (low) plot.style.height = "225px"; // three on a sheet
    const sheet = printing ? heightOnSheet(figure) : Infinity, tall = parseInt(figure.height) > sheet;
    if (tall) plot.style.height = `${sheet}px`;
    // The figures of the answer stand side by side on paper.
    const count = element.closest("#overview-1")?.querySelectorAll("figure").length ?? 1, paperWidth = SHEET_WIDTH / count - 7 * (count - 1);
    const width = () => printing ? paperWidth : plot.clientWidth;
    const maps = narrow && layout.meta?.maps;
    if (maps?.length > 1) stackMaps(layout, plot, maps);
    if (narrow) fitNarrow(shown, width(), plot.clientHeight);
    if (narrow || printing) shortenNames(shown, width());
    // Names of many axes side by side are small, and tilted on paper.
    const parallel = data.find(trace => trace.type === "parcoords"), parallels = parallel?.dimensions.length;
    if (parallels > 10) parallel.labelfont = {...parallel.labelfont, size: 10};
    if (printing && parallels > 6) {
      parallel.labelangle = parallels > 10 ? -50 : -25;
      layout.margin = {...layout.margin, r: 90, t: 90};
    }
    fitNames(plot, shown, width(), sheet);
    fitCells(shown, width());
    fitScene(shown, width(), plot.clientHeight, printing);
    if (narrow || (printing ? !low : element.closest("#overview-1"))) fitLegend(plot, shown, sheet);
    if (maps) barAbove(plot, shown);
    if (narrow && layout.meta?.panels?.columns > 2) inTwoColumns(layout, plot);
    // On paper the numbers beside narrow panels are small: they stand in the gaps between them.
    if (printing && axesOf(layout, "x").some(({domain: [low, high] = [0, 1]}) => high - low < 0.35))
      for (const axis of axesOf(layout, "y")) axis.tickfont = {...axis.tickfont, size: 9};
    fitTitles(layout, width());
    for (const axis of axesOf(layout, "x")) if (axis.type === "log") axis.tickangle ??= 0; // `partTicks` makes room
    // A page of paper: the browser does not ask figures to fit it, and controls leave their room to the plot.
    if (printing) Object.assign(layout, {width: paperWidth, height: plot.clientHeight, updatemenus: [], sliders: []});
    if (tall) fitSheet(shown, sheet);
    // Without a legend, titles of panels or buttons above it, a plot begins below its caption.
    const above = legendRows(shown, plot.clientWidth) || layout.annotations?.length || parallel;
    if ((narrow || printing) && !above && layout.margin?.t > 24) layout.margin = {...layout.margin, t: 24};
    // Text in low figures is as small as that around them; a title of a panel needs room above it.
    if (low) {
      Object.assign(layout.template.layout.font, {size: 11});
      if (count > 1) Object.assign(layout.template.layout.xaxis.title, {standoff: 4, font: {size: 11}}); // of all axes
      layout.margin = {...layout.margin, t: layout.annotations?.some(note => !note.showarrow) ? 26 : 10, b: 30};
    }
  }

  // On a narrow screen a time slider is below its buttons, names of parallel axes are tilted, scales of decades have
  // few labels, and labels of points turn inwards where they would leave the figure.
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
  function fitScene({data, layout: {scene, sliders}}, width, height, printing) {
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

  // The widths of the entries of a legend above a plot, and its rows in a figure this wide: several have equal columns.
  function legendEntries({data, layout: {legend, showlegend}}) {
    if (showlegend === false || legend?.orientation !== "h") return [];
    const entries = new Set(data.filter(t => t.name && t.showlegend !== false && t.visible !== false).map(t => t.name));
    return entries.size < 2 && !data.some(t => t.showlegend) ? [] : [...entries].map(name => 42 + 7 * name.length);
  }
  function legendRows(plot, width) {
    const entries = legendEntries(plot), room = width - 110;
    if (entries.reduce((sum, needed) => sum + needed, 0) <= room) return Math.min(entries.length, 1);
    return Math.ceil(entries.length / Math.max(1, Math.floor(room / Math.max(...entries))));
  }

  // A legend of many rows makes a figure higher on a narrow screen, on paper or beside the answer, so that its plot keeps
  // its height.
  function fitLegend(element, plot, highest) {
    const rows = legendRows(plot, element.clientWidth);
    if (rows <= 2) return;
    element.style.height = `${Math.min(element.clientHeight + 20 * (rows - 2), highest)}px`;
    plot.layout.margin = {...plot.layout.margin, t: Math.max(plot.layout.margin?.t ?? 0, 20 * rows + 24)};
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

  // Curves or points in one pair of axes of numbers, not drawn to scale, with a short legend.
  function isLow({data, layout}) {
    return legendRows({data, layout}, SHEET_WIDTH) <= 2 && !Object.keys(layout).some(name => /^[xy]axis\d/.test(name)) && layout.yaxis?.type !== "category"
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

  // What a sheet leaves for a plot beside its caption and note, and beside a short text that heads it.
  function heightOnSheet({element, plot}) {
    const top = e => e.getBoundingClientRect().top, above = top(element) - top(element.closest("section"));
    return SHEET_HEIGHT - (element.offsetHeight - plot.offsetHeight) - (above < SHEET_HEIGHT / 3 ? above : 0);
  }

  // The figure of the answer takes what its words and tables leave of a page; where that is too little they shrink.
  function fitAnswer() {
    const answer = document.getElementById("overview-1");
    const several = answer?.querySelectorAll("figure").length > 1, [least, most] = [several ? 190 : 210, 320], others = answer ? [...answer.children].filter(e => e.matches(".words, .tables, .note")) : [];
    const left = () => SHEET_HEIGHT - answer.getBoundingClientRect().bottom + document.querySelector("main").getBoundingClientRect().top;
    for (const element of others) element.style.zoom = "";
    root.style.setProperty("--paper-height", `${least}px`);
    for (let zoom = 0.95; answer?.querySelector("figure") && left() < 0 && zoom > 0.7; zoom -= 0.05)
      for (const element of others) element.style.zoom = zoom;
    if (answer) root.style.setProperty("--paper-height", `${Math.min(most, least + Math.max(left(), 0))}px`);
  }

  // The axes whose labels may touch, those with a logarithmic scale and those of low panels, each with its texts.
  function labelledAxes(plot) {
    const axes = Object.values(plot._fullLayout).filter(axis => axis?._id && (axis.type === "log" || axis.type === "linear" && axis._id[0] === "y"));
    return axes.map(axis => [axis, [...plot.querySelectorAll(`.${axis._id}tick text`)]]);
  }

  // A label that would touch another one is hidden; powers of ten and integers stay as far as they have room.
  function partTicks({plot}) {
    const isRound = text => Math.abs(text.__data__.x - Math.round(text.__data__.x)) < 1e-9;
    const texts = labelledAxes(plot).flatMap(([, labels]) => labels), shown = [];
    for (const text of texts) text.style.visibility = "";
    for (const text of [...texts.filter(isRound), ...texts.filter(text => !isRound(text))]) {
      const {left, right, top, bottom} = text.getBoundingClientRect();
      if (shown.every(box => right + 3 < box.left || box.right + 3 < left || bottom < box.top + 3 || box.bottom < top + 3)) shown.push({left, right, top, bottom});
      else text.style.visibility = "hidden";
    }
  }

  // The figure with the labels that are shown, to be saved.
  function asShown({plot}) {
    const layout = {...plot.layout};
    for (const [axis, texts] of labelledAxes(plot)) {
      const labels = texts.filter(text => text.style.visibility !== "hidden").map(text => text.__data__);
      if (labels.length === texts.length) continue;
      layout[axis._name] = {...layout[axis._name], tickmode: "array", tickvals: labels.map(({x}) => axis.type === "log" ? 10 ** x : x), ticktext: labels.map(({text}) => text)};
    }
    return {data: plot.data, layout};
  }

  return {isNarrow, fitFigure, fitAnswer, partTicks, asShown};
})();

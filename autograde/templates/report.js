"use strict";

// sort a table by the column of a button: numbers as numbers, signs by rank, what is unknown last
function key(cell, signs) {
  const text = cell.dataset.v ?? cell.textContent.trim();
  if (cell.classList.contains("cell")) return signs.indexOf(text);
  return text !== "" && !isNaN(text) ? Number(text) : text;
}
const words = new Intl.Collator("en", { numeric: true });
function compare(a, b) {
  if (a === "" || b === "") return (a === "") - (b === "");
  return typeof a === "number" && typeof b === "number" ? a - b : words.compare(a, b);
}
function sort(button) {
  const header = button.parentElement, table = header.closest("table"), body = table.tBodies[0];
  const sign = header.ariaSort === "ascending" ? -1 : 1;
  const keyed = Array.from(body.rows, (row) => [key(row.cells[header.cellIndex], table.dataset.signs), row]);
  const unknown = (k) => k === "";
  keyed.sort(([a], [b]) => (unknown(a) || unknown(b) ? 1 : sign) * compare(a, b));
  for (const other of header.parentElement.cells) other.ariaSort = null;
  header.ariaSort = sign > 0 ? "ascending" : "descending";
  body.append(...keyed.map(([, row]) => row));
}
for (const button of document.querySelectorAll(".sortable th button")) {
  button.addEventListener("click", () => sort(button));
}

// show only the students whose name or troubles have a text in them
const filter = document.getElementById("filter"), shown = document.getElementById("shown");
const students = Array.from(document.getElementById("heat").tBodies[0].rows, (row) => ({
  row,
  text: `${row.cells[0].textContent} ${row.lastElementChild.textContent}`.toLowerCase(),
}));
filter.addEventListener("input", () => {
  const wanted = filter.value.trim().toLowerCase();
  let count = 0;
  for (const { row, text } of students) {
    row.hidden = !text.includes(wanted);
    count += !row.hidden;
  }
  shown.textContent = `${count} of ${students.length} students`;
});

// what is folded is printed too, but not every student's troubles
addEventListener("beforeprint", () => {
  for (const folded of document.querySelectorAll("main > :not(#heat-map) details:not([open])")) {
    folded.open = true;
    addEventListener("afterprint", () => (folded.open = false), { once: true });
  }
});

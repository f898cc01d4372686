// Sorts the table of objects by the column whose heading is clicked; a second click turns the order round.
const table = document.getElementById("objects");
const headings = [...table.tHead.rows[0].cells];

function compare(a, b) {
  if (a.dataset.value === undefined) {
    return a.textContent.localeCompare(b.textContent, "en", { numeric: true });
  }
  const absent = Number(a.dataset.value === "") - Number(b.dataset.value === "");
  return absent || Number(a.dataset.value) - Number(b.dataset.value);
}

headings.forEach((heading, column) => heading.firstElementChild.addEventListener("click", () => {
  const descending = heading.getAttribute("aria-sort") === "ascending";
  headings.forEach((other) => other.removeAttribute("aria-sort"));
  heading.setAttribute("aria-sort", descending ? "descending" : "ascending");
  const rows = [...table.tBodies[0].rows].sort((a, b) => compare(a.cells[column], b.cells[column]));
  if (descending) rows.reverse();
  table.tBodies[0].append(...rows);
}));

"use strict";
// Headings become buttons that sort; without a script the tables stay as they are.
for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.tHead.rows[0].cells];
  const body = table.tBodies[0];
  if (body.rows.length < 2) continue;
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const rows = [...body.rows].sort((a, b) => compare(a.cells[column], b.cells[column], down ? -1 : 1));
      body.append(...rows);
    });
  });
}

// Numbers by size, then what has no number, as text; what has none stays last whichever the direction.
function compare(one, other, direction) {
  const [a, b] = [one.dataset.sort, other.dataset.sort];
  if (a !== undefined && b !== undefined) return direction * (Number(a) - Number(b));
  if (a !== undefined || b !== undefined) return a !== undefined ? -1 : 1;
  return direction * one.textContent.localeCompare(other.textContent, "en", { numeric: true });
}

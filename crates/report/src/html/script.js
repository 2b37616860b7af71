// Sorting and downloading of tables. Everything else works without.
"use strict";
for (const table of document.querySelectorAll("table.data")) {
  const body = table.tBodies[0];
  const heads = table.tHead.rows[table.tHead.rows.length - 1].cells;
  const value = (row, i) => {
    const cell = row.cells[i];
    const v = cell.dataset.v ?? cell.textContent.trim();
    return v !== "" && !isNaN(v) ? Number(v) : v;
  };
  const compare = (a, b) =>
    typeof a === typeof b ? (typeof a === "number" ? a - b : a.localeCompare(b)) : typeof a === "number" ? -1 : 1;

  if (body.rows.length > 1) {
    [...heads].forEach((head, i) => {
      const button = document.createElement("button");
      button.type = "button";
      button.className = "sort";
      button.setAttribute("aria-label", "Sort by " + head.textContent.trim());
      button.addEventListener("click", () => {
        const up = head.getAttribute("aria-sort") !== "ascending";
        for (const other of heads) other.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", up ? "ascending" : "descending");
        const rows = [...body.rows].sort((a, b) => compare(value(a, i), value(b, i)) * (up ? 1 : -1));
        body.append(...rows);
        table.classList.add("sorted");
      });
      head.insertBefore(button, head.querySelector(".unit"));
      button.before("\u00a0");
    });
  }

  const button = document.createElement("button");
  button.type = "button";
  button.className = "download";
  button.textContent = "Download as CSV";
  button.addEventListener("click", () => {
    const quote = (text) => '"' + text.replaceAll('"', '""') + '"';
    const text = (cell) => quote(cell.textContent.replace(/\s+/g, " ").trim());
    const lines = [[...heads], ...[...body.rows].map((row) => [...row.cells])].map((cells) => cells.map(text).join(","));
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([lines.join("\r\n") + "\r\n"], { type: "text/csv" }));
    link.download = table.dataset.name + ".csv";
    link.click();
    URL.revokeObjectURL(link.href);
  });
  table.parentElement.after(button);
}

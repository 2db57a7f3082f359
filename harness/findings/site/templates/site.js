"use strict";
// Filters of the list, which the address keeps (index.html#framework=torch&q=nan), and buttons that copy.

const list = document.getElementById("causes");
const fields = ["q", "framework", "severity", "state", "reach", "operator"];

function chosen() {
  const asked = {};
  for (const name of fields) {
    const control = document.getElementById(name);
    if (control && control.value) asked[name] = control.value;
  }
  return asked;
}

function fits(row, asked) {
  for (const [name, value] of Object.entries(asked)) {
    if (name === "q") {
      const text = row.dataset.text;
      if (!value.toLowerCase().split(/\s+/).every((word) => text.includes(word))) return false;
    } else if (name === "operator") {
      if (!` ${row.dataset.operator} `.includes(` ${value} `)) return false;
    } else if (row.dataset[name] !== value) return false;
  }
  return true;
}

function show(keep = true) {
  const asked = chosen();
  let count = 0;
  for (const row of list.children) {
    row.hidden = !fits(row, asked);
    count += !row.hidden;
  }
  document.getElementById("count").textContent = `${count} of ${list.children.length}`;
  document.getElementById("nothing").hidden = count > 0;
  if (keep) {
    try {
      const address = new URLSearchParams(asked).toString();
      history.replaceState(null, "", address ? `#${address}` : location.pathname.split("/").pop() || "index.html");
    } catch { /* a file that is opened in a frame has no history */ }
  }
}

function read() {
  const asked = new URLSearchParams(location.hash.slice(1));
  for (const name of fields) {
    const control = document.getElementById(name);
    if (control) control.value = asked.get(name) || "";
  }
  show(false);
}

function choose(name, value) {
  const control = document.getElementById(name);
  control.value = control.value === value ? "" : value;
  show();
  document.querySelector(".filters").scrollIntoView({ behavior: "smooth", block: "start" });
}

async function copy(button) {
  const source = document.getElementById(button.dataset.copy);
  const text = [...source.querySelectorAll("[data-part]")].map((part) => part.textContent).join("") || source.textContent;
  let done = false;
  try {
    await navigator.clipboard.writeText(text);
    done = true;
  } catch {
    const area = document.createElement("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    done = document.execCommand("copy");
    area.remove();
  }
  button.textContent = done ? "copied" : "press Ctrl-C";
  button.classList.toggle("done", done);
  setTimeout(() => { button.textContent = "copy"; button.classList.remove("done"); }, 2000);
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("button");
  if (!button) return;
  if (button.dataset.copy) copy(button);
  else if (button.dataset.choose) choose(button.dataset.choose, button.dataset.value);
  else if (button.id === "reset") {
    for (const name of fields) document.getElementById(name).value = "";
    show();
  }
});

if (list) {
  for (const name of fields) document.getElementById(name).addEventListener("input", () => show());
  addEventListener("hashchange", read);
  read();
}

/**
 * The few parts of ComfyUI's frontend that the panel touches, so that a test has them in a tenth of a
 * second and alone. What only the real frontend can show is tested there (test_frontend.py).
 */

export const api = Object.assign(new EventTarget(), {
  fetchApi: (route, options) => fetch(`/api${route}`, options),
});

const settings = { "Comfy.Locale": "en", "Comfy.ColorPalette": "dark" };
const tabs = new Map();
let opened;
let nodes = [];

/** Nodes of an API-format prompt, as the canvas would hold them. */
function load(prompt) {
  nodes = Object.entries(prompt).map(([id, { class_type, inputs }]) => {
    const entries = Object.entries(inputs);
    const linked = entries.filter(([, value]) => Array.isArray(value));
    const constant = entries.filter(([, value]) => !Array.isArray(value));
    return {
      id: Number(id),
      type: class_type,
      mode: 0,
      inputs: linked.map(([name, link]) => ({ name, link: link.join(":"), from: link })),
      widgets: constant.map(([name, value]) => ({ name, value })),
    };
  });
}

function graphToPrompt() {
  const output = {};
  for (const { id, type, inputs, widgets } of nodes) {
    const values = [
      ...inputs.map(({ name, from }) => [name, from]),
      ...widgets.map(({ name, value }) => [name, value]),
    ];
    output[id] = { class_type: type, inputs: Object.fromEntries(values) };
  }
  return Promise.resolve({ output });
}

const setting = {
  get: (id) => settings[id],
  set(id, value) {
    settings[id] = value;
    document.body.className = settings["Comfy.ColorPalette"];
    return Promise.resolve();
  },
};

const sidebarTab = {
  toggleSidebarTab(id) {
    const place = document.getElementById("side");
    if (opened) {
      opened.destroy();
      place.replaceChildren();
      opened = undefined;
      return;
    }
    opened = tabs.get(id);
    opened.render(place.appendChild(document.createElement("div")));
    place.firstChild.style.height = "100%";
  },
};

export const app = {
  graph: {
    get nodes() {
      return nodes;
    },
    getNodeById: (id) => nodes.find((node) => node.id === Number(id)),
  },
  load,
  graphToPrompt,
  registerExtension: (extension) => extension.setup(),
  async queuePrompt() {
    const body = JSON.stringify({ prompt: (await graphToPrompt()).output });
    await api.fetchApi("/prompt", { method: "POST", body });
  },
  extensionManager: {
    setting,
    sidebarTab,
    registerSidebarTab: (tab) => tabs.set(tab.id, tab),
    getSidebarTabs: () => [...tabs.values()],
  },
};

/** Open the socket, then load the extensions as the frontend does. */
export async function start() {
  const asked = new URLSearchParams(location.search);
  setting.set("Comfy.Locale", asked.get("locale") ?? "en");
  setting.set("Comfy.ColorPalette", asked.get("theme") ?? "dark");
  const socket = new WebSocket(`ws://${location.host}/ws`);
  socket.addEventListener("message", ({ data }) => {
    const { type, data: detail } = JSON.parse(data);
    api.dispatchEvent(new CustomEvent(type, { detail }));
  });
  await new Promise((done) => socket.addEventListener("open", done));
  for (const file of await (await api.fetchApi("/extensions")).json()) await import(file);
  window.app = app;
}

/** Lowpeak's sidebar tab. ComfyUI imports this file at start; nothing is asked before it is opened. */

import { api } from "../../scripts/api.js";
import { app } from "../../scripts/app.js";
import { Host } from "./host";
import { Panel } from "./panel";
import { t } from "./texts";
import { View } from "./view/view";

app.registerExtension({
  name: "Lowpeak.Panel",
  setup() {
    const panel = new Panel(new Host(app, api));
    let view: View | undefined;
    app.extensionManager.registerSidebarTab({
      id: "lowpeak",
      title: "Lowpeak",
      label: "Lowpeak",
      icon: "pi pi-chart-bar",
      tooltip: t("tab.tooltip"),
      type: "custom",
      render(element) {
        const draw = () => {
          view?.close();
          panel.followLanguage();
          view = new View(element, panel);
        };
        panel.onLanguage = draw;
        draw();
      },
      destroy() {
        panel.onLanguage = () => {};
        view?.close();
        view = undefined;
      },
    });
  },
});

// The documentation as a site: build.sh copies the pages beside this file and runs VitePress.
import { readFileSync } from "node:fs";

const page = (name) => {
  const title = readFileSync(new URL(`../${name}.md`, import.meta.url), "utf8").match(/^# (.+)$/m)[1];
  return { text: title.replaceAll("`", ""), link: `/${name}` };
};
const part = (text, ...names) => ({ text, items: names.map(page) });

export default {
  title: "reboot-operator",
  description: "Reboots the nodes of a Kubernetes cluster after an operating-system update",
  base: process.env.SITE_BASE || "/",
  cleanUrls: false,
  lastUpdated: false,
  ignoreDeadLinks: false,
  themeConfig: {
    search: { provider: "local" },
    outline: [2, 3],
    sidebar: [
      { text: "Start", items: [{ text: "Overview", link: "/" }, page("install"), page("first-reboot"), page("examples/README")] },
      part("Guides", "policy", "hosts", "operations", "kubectl", "hooks", "controllers", "runbooks", "migrate"),
      part("Reference", "reasons", "reference", "behaviours", "design", "security"),
      part("Evidence", "testing", "benchmarks", "limits", "chaos", "simulation", "security-attempts", "e2e"),
    ],
  },
};

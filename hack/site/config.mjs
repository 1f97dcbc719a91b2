// Configuration of the documentation site. build.sh copies the pages next to this file and runs
// VitePress.
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
  markdown: {
    config(md) {
      const fence = md.renderer.rules.fence;
      md.renderer.rules.fence = (tokens, i, ...rest) =>
        tokens[i].info === "mermaid" ? `<Mermaid code="${encodeURIComponent(tokens[i].content)}" />` : fence(tokens, i, ...rest);
    },
  },
  themeConfig: {
    search: { provider: "local" },
    outline: [2, 3],
    sidebar: [
      { text: "Start", items: [{ text: "Overview", link: "/" }, page("install"), page("first-reboot"), page("hosts"), page("migrate")] },
      part("How-to: plan reboots", "howto/choose-nodes", "howto/windows", "howto/limits", "howto/rings", "howto/deadlines", "howto/urgent"),
      part("How-to: protect workloads", "howto/drain-problems", "howto/storage", "howto/blocking-pods", "howto/prometheus-gate", "howto/object-gate", "howto/hooks", "howto/run-hooks"),
      part("How-to: clusters", "howto/control-plane", "howto/single-node", "howto/clouds", "howto/gitops"),
      part("How-to: every day", "operations", "howto/notifications", "runbooks", "controllers"),
      part("Explanation", "how-a-reboot-happens", "security", "design"),
      part("Reference", "api", "reasons", "reference", "kubectl", "examples/README"),
      part("Evidence", "behaviours", "testing", "e2e", "chaos", "simulation", "benchmarks", "limits", "security-attempts"),
    ],
  },
};

// The default theme, and pictures that pages describe in Mermaid.
import DefaultTheme from "vitepress/theme";
import Mermaid from "./Mermaid.vue";

export default {
  extends: DefaultTheme,
  enhanceApp({ app }) {
    app.component("Mermaid", Mermaid);
  },
};

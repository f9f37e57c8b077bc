import { render } from "preact";
import "uplot/dist/uPlot.min.css";
import "./palette.css";
import "./style.css";
import "./views.css";
import { App } from "./app";
import { start_theme } from "./theme";
import { wire } from "./wire/socket";

start_theme();
wire.start();
render(<App />, document.getElementById("app")!);

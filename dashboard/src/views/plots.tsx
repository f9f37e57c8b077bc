import { Head } from "../parts/common";
import { PlotCharts, WindowChoice } from "../parts/plot";
import { charts, clear, usePlots } from "../plots";
import { href } from "../router";

export function Plots() {
  usePlots();
  const any = charts().length > 0;
  return (
    <>
      <Head title="Plots" note="of all topics">
        {any && <button onClick={clear}>Remove all</button>}
        <WindowChoice />
      </Head>
      {any ? (
        <div class="plots"><PlotCharts /></div>
      ) : (
        <div class="empty">
          <p>No plots yet.</p>
          <p>Open a <a href={href("topics")}>topic</a> and click a number in its message, or a number in the <a href={href("state")}>state</a>.</p>
        </div>
      )}
    </>
  );
}

// Overview of the robot: its health, connections, and drivers.

import { useState } from "preact/hooks";
import { useDomain, useHost } from "../domain";
import { Graph } from "../graph/graph";
import { Filter, Head, Panel, Stat, State, total } from "../parts/common";
import { href } from "../router";
import * as units from "../units";
import type { TopicRow } from "../wire/types";
import { ProblemList } from "./problems";

export function Overview() {
  const { figures, nodes, commands } = useDomain();
  const host = useHost();
  const [filter, set_filter] = useState("");
  if (!figures) return null;
  const sum = (of: (topic: TopicRow) => number) => figures.topics.reduce((n, topic) => n + of(topic), 0);
  const gone = nodes.filter((node) => node.gone).length;
  const lost_now = sum((topic) => topic.lost_in_interval);
  const problems = figures.problems.filter((p) => p.level === "problem");
  const slowest = Math.max(...figures.topics.map((topic) => topic.latency.p99_ns ?? 0), 0);
  return (
    <>
      <Head title="Overview" note={`at ${units.clock(figures.at_s)}`}>
        <Filter value={filter} set={set_filter} label="Filter the graph" />
      </Head>
      <div class="stats">
        <Stat name="Nodes" value={units.count(figures.nodes.length)} note={gone ? `${units.count(gone)} gone` : "all running"} tone={gone ? "bad" : undefined} to={href("nodes")} />
        <Stat name="Topics" value={units.count(figures.topics.length)} to={href("topics")} note={`${units.plural(sum((t) => t.subscribers.length), "subscription")}`} />
        <Stat name="Messages" value={units.rate(sum((t) => t.rate_hz))} note={units.bandwidth(sum((t) => t.bytes_per_s))} />
        <Stat name="Slowest p99" value={slowest ? units.duration_ns(slowest) : "–"} note="from send to receive" />
        <Stat name="Lost" value={units.count(sum((t) => total(t.lost)))} note={lost_now ? `${units.count(lost_now)} just now` : "none just now"} tone={lost_now ? "bad" : undefined} />
        <Stat name="Problems" value={units.count(problems.length)} note={problems.length ? "see below" : "no problems"} tone={problems.length ? "bad" : "ok"} to={href("problems")} />
      </div>
      {problems.length > 0 && <ProblemList problems={problems} />}
      <Panel class="flush">
        <Graph filter={filter} />
      </Panel>
      {commands && commands.length > 0 && (
        <Panel title="Active drivers" tools={<a href={href("commands")}>All commands</a>}>
          <ul class="drives">
            {commands.map((command) => (
              <li key={command.command}>
                <b>{command.command}</b>
                <State word={command.state} />
                <span>{command.held ? `stopped by this dashboard on ${host}` : (command.driver ?? "no driver")}</span>
              </li>
            ))}
          </ul>
        </Panel>
      )}
    </>
  );
}

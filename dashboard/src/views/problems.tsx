import { useDomain } from "../domain";
import { Head, NodeLink, Panel, TopicLink, CodeText } from "../parts/common";
import * as units from "../units";
import type { Problem } from "../wire/types";

export function Problems() {
  const { figures, nodes } = useDomain();
  if (!figures) return null;
  const problems = figures.problems.filter((p) => p.level === "problem");
  const notes = figures.problems.filter((p) => p.level !== "problem");
  const gone = nodes.filter((node) => node.gone);
  return (
    <>
      <Head title="Problems" note="current problems and remedies" />
      {problems.length ? (
        <ProblemList problems={problems} />
      ) : (
        <p class="empty">No problems: all publishers and subscribers match, no message was lost, and no deadline was missed recently.</p>
      )}
      {gone.length > 0 && (
        <Panel title="Gone in the last minute">
          <ul class="plain">
            {gone.map((node) => (
              <li key={node.node}>
                <span class="bad"><NodeLink name={node.node} /></span> on {node.host}, since {units.clock(node.gone!.since_s)}
              </li>
            ))}
          </ul>
        </Panel>
      )}
      {figures.mismatches.length > 0 && (
        <Panel title="Incompatible publishers and subscribers">
          <ul class="plain">
            {figures.mismatches.map((m) => (
              <li key={`${m.topic} ${m.publisher} ${m.subscriber}`}>
                <TopicLink name={m.topic} />: <NodeLink name={m.publisher} /> to <NodeLink name={m.subscriber} />: {m.why}
              </li>
            ))}
          </ul>
        </Panel>
      )}
      {notes.length > 0 && (
        <Panel title="Notes">
          <ul class="plain">
            {notes.map((note) => (
              <li key={note.what}>{note.what}</li>
            ))}
          </ul>
        </Panel>
      )}
    </>
  );
}

export function ProblemList({ problems }: { problems: Problem[] }) {
  return (
    <ul class="problems" aria-label="Problems">
      {problems.map((problem) => (
        <li key={`${problem.check} ${problem.what}`}>
          <span class="tag bad">{problem.check}</span>
          <span>
            <CodeText text={problem.what} />
            {problem.advice && <span class="advice"><CodeText text={problem.advice} /></span>}
          </span>
        </li>
      ))}
    </ul>
  );
}

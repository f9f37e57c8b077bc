import { href } from "../router";
import { Icon } from "./icons";

const GROUPS: [string, [string, string][]][] = [
  ["See", [["overview", "Overview"], ["topics", "Topics"], ["plots", "Plots"], ["transforms", "Transforms"], ["nodes", "Nodes"], ["problems", "Problems"], ["logs", "Logs"]]],
  ["Act", [["commands", "Commands"], ["params", "Parameters"], ["state", "State"], ["services", "Services"]]],
  ["Run", [["record", "Recording"], ["launch", "Launch"], ["hosts", "Hosts"]]],
];

export function Nav({ view, open, problems }: { view: string; open: boolean; problems: number }) {
  return (
    <nav id="nav" class={open ? "open" : ""} aria-label="Views">
      {GROUPS.map(([title, views]) => (
        <div class="group" key={title}>
          <h2>{title}</h2>
          <ul>
            {views.map(([name, label]) => (
              <li key={name}>
                <a href={href(name)} aria-current={name === view ? "page" : undefined}>
                  <Icon name={name} />
                  {label}
                  {name === "problems" && problems > 0 && (
                    <span class="count bad" aria-label={`${problems} now`}>
                      {problems}
                    </span>
                  )}
                </a>
              </li>
            ))}
          </ul>
        </div>
      ))}
    </nav>
  );
}

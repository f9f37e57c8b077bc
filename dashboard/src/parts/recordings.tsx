// The recordings in the dashboard's folder, with download and playback.

import * as units from "../units";
import { wire } from "../wire/socket";
import type { Playing, RecordedFile, RecordData } from "../wire/types";
import { useConnectionState, useRequest } from "../wire/use";
import { ErrorMessage, Panel, Stat } from "./common";
import { Table, type Column } from "./table";

export function Recordings({ data }: { data: RecordData }) {
  const link = useConnectionState();
  const { busy, error, run, clear } = useRequest();
  const playing = data.playing && !data.playing.is_over ? data.playing : null;
  const off = link.is !== "open" || !!wire.refusal("operate") || busy;
  const written = data.recording?.file.split("/").pop();
  const columns: Column<RecordedFile>[] = [
    { title: "Recording", by: (f) => f.name, cell: (f) => f.name },
    { title: "Written", figure: true, by: (f) => f.modified_s, cell: (f) => units.date_clock(f.modified_s), opt: 2 },
    { title: "Size", figure: true, by: (f) => f.bytes, cell: (f) => units.bytes(f.bytes) },
    {
      title: "Do",
      cell: (f) =>
        f.name === written ? (
          <span class="dim">recording…</span>
        ) : (
          <span class="buttons">
            <button disabled={off || playing !== null} title={playing ? "Another recording is playing" : "Publish its messages on their original topics"} onClick={() => run("play.start", { name: f.name })} aria-label={`Play ${f.name}`}>Play</button>
            <a class="button" href={`/recordings/${encodeURIComponent(f.name)}`} download={f.name} aria-label={`Download ${f.name}`}>Download</a>
          </span>
        ),
    },
  ];
  return (
    <Panel title="Recordings" tools={playing && <span class="recording"><span class="dot" aria-hidden="true" />playing</span>}>
      {data.playing && <Player playing={data.playing} off={off} run={run} />}
      <ErrorMessage text={error} clear={clear} />
      <Table label="Recordings" name="recordings" columns={columns} rows={data.files ?? []} id={(f) => f.name} first={1} empty={<p>{data.folder ? "No recordings in this folder yet." : "The dashboard was started without --recordings."}</p>} />
    </Panel>
  );
}

function Player({ playing, off, run }: { playing: Playing; off: boolean; run(op: string): Promise<unknown> }) {
  const { name, at_s, length_s, paused, is_over, played, problem } = playing;
  return (
    <>
      {is_over ? (
        played !== null && <p class="done" role="status">Played {name}: {units.plural(played, "message")}</p>
      ) : (
        <div class="stats">
          <Stat name={paused ? "Paused" : "Playing"} value={name} />
          <Stat name="At" value={units.span(at_s)} note={`of ${units.span(length_s)}`} />
          <div class="stat">
            <span class="buttons">
              <button disabled={off} onClick={() => run("play.pause")}>{paused ? "Resume" : "Pause"}</button>
              <button disabled={off} onClick={() => run("play.stop")}>Stop playing</button>
            </span>
          </div>
        </div>
      )}
      {problem && <p class="error" role="alert">{problem}</p>}
    </>
  );
}

// Prints the results of node's test runner for scripts/step.sh: a line per test, "N passed", "NOT RUN: TEST:
// why".

export default async function* report(events) {
  const counts = { passed: 0, failed: 0 };
  for await (const { type, data } of events) {
    const name = data?.file ? `${data.file.replace(/.*\/dashboard\//, "dashboard/")}::${data.name}` : data?.name;
    if (type === "test:stdout" || type === "test:stderr") yield data.message;
    // The runner reports files as tests too; a group of tests is not a test.
    if (data?.name?.endsWith(".mjs") && type !== "test:fail") continue;
    if (type === "test:pass" && data.skip !== undefined) yield `NOT RUN: ${name}: ${data.skip}\n`;
    else if (type === "test:pass") {
      counts.passed += 1;
      yield `ok ${name}  ${(data.details.duration_ms / 1000).toFixed(1)} s\n`;
    } else if (type === "test:fail") {
      counts.failed += 1;
      const error = data.details.error;
      yield `FAILED ${name}\n${error?.cause?.stack ?? error?.cause ?? error?.message ?? error}\n`;
    }
  }
  yield `${counts.passed} passed, ${counts.failed} failed\n`;
}

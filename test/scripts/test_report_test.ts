import { test } from "node:test";
import { assertEquals } from "@std/assert";
import { failedFiles } from "../../scripts/support/test-report.ts";

/** `a` has a passed and a failed test, `b` passed, `c` could not be loaded: what each runtime writes of them. */
const files = ["./test/a_test.ts", "./test/b_test.ts", "./test/c_test.ts"];
const reports = {
  deno: `<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="deno test" tests="3" failures="1" errors="0" time="0.070">
    <testsuite name="./test/a_test.ts" tests="2" disabled="0" errors="0" failures="1">
        <testcase name="good" classname="./test/a_test.ts" time="0.001" line="2" col="1">
        </testcase>
        <testcase name="bad &quot;x&quot;" classname="./test/a_test.ts" time="0.002" line="2" col="23">
            <failure message="Uncaught Error: boo">Error: boo
    at NodeTestContext.&lt;anonymous&gt; (file:///m/test/a_test.ts:2:53)</failure>
        </testcase>
    </testsuite>
    <testsuite name="./test/b_test.ts" tests="1" disabled="0" errors="0" failures="0">
        <testcase name="good" classname="./test/b_test.ts" time="0.001" line="2" col="1">
        </testcase>
    </testsuite>
</testsuites>`,
  node: `<?xml version="1.0" encoding="utf-8"?>
<testsuites>
	<testcase name="bad &amp;quot;x&amp;quot;" time="0.000298" classname="test" file="/m/test/a_test.ts" failure="boo">
		<failure type="testCodeFailure" message="boo">
[Error [ERR_TEST_FAILURE]: boo] { at Test.run (node:internal/test_runner/test:1402:25) }
		</failure>
	</testcase>
	<testcase name="good" time="0.000854" classname="test" file="/m/test/a_test.ts"/>
	<testcase name="good" time="0.000653" classname="test" file="/m/test/b_test.ts"/>
	<testcase name="c_test.ts" time="0.071539" classname="test" file="/m/test/c_test.ts" failure="test failed">
		<failure type="testCodeFailure" message="test failed">exitCode: 1</failure>
	</testcase>
</testsuites>`,
  bun: `<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="bun test" tests="3" assertions="0" failures="1" skipped="0" time="0.111705325">
  <testsuite name="test/a_test.ts" file="test/a_test.ts" tests="2" assertions="0" failures="1" skipped="0" time="0.034" hostname="vm">
    <testcase name="bad &quot;x&quot;" classname="" time="0.000261" file="test/a_test.ts" line="2" assertions="0">
      <failure type="Error" message="boo">Error: boo&#10;      at a_test.ts:2:57</failure>
    </testcase>
    <testcase name="good" classname="" time="0.001581" file="test/a_test.ts" line="2" assertions="0" />
  </testsuite>
  <testsuite name="test/b_test.ts" file="test/b_test.ts" tests="1" assertions="0" failures="0" skipped="0" time="0.028" hostname="vm">
    <testcase name="good" classname="" time="0.001725" file="test/b_test.ts" line="2" assertions="0" />
  </testsuite>
</testsuites>`,
};

for (const [runtime, report] of Object.entries(reports)) {
  test(`failedFiles() names files with a failed test and files that could not be loaded, from a report of ${runtime}`, () => {
    assertEquals(failedFiles(report, files, "/m"), ["./test/a_test.ts", "./test/c_test.ts"]);
  });
}

test("failedFiles() names all files when there is no report", () => {
  assertEquals(failedFiles("", files, "/m"), files);
});

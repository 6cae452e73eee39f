#!/usr/bin/env bash
# Tests the runner of the text tests. Differences must fail with a unified diff, --update must rewrite only the expected
# texts, and files without cases must be refused. Argument: the program text_tests.
set -euo pipefail
runner=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/fusion"
file=$work/fusion/cases.txt
fail() { echo "self_test: $*"; exit 1; }

write() {
  cat >"$file" <<TEXT
# A comment.
options: only=removeDead

=== first: the dead expression is removed
fusion f(%a: f32[t]) {
  %dead = exp(%a)   # input texts stay as they are
  %b = relu(%a)
  return %b
}
--- expected
fusion f(%a: f32[t]) {
  %b = $1(%a)
  return %b
}

=== second: is refused
options: ranks=4
fusion f(%a: f32[t]) {
  return %b
}
--- error
$2
TEXT
}

unknown='case:2:10: found %b, expected a value that is defined above'
write relu "$unknown"
"$runner" --update "$file" >"$work/out"
cp "$file" "$work/right"
grep -q '# input texts stay as they are' "$file" || fail "--update changed the input"
"$runner" "$file" >"$work/out" || fail "the updated file fails: $(cat "$work/out")"

write exp wrong
if "$runner" "$file" >"$work/out"; then fail "wrong texts pass"; fi
for line in '--- expected' '+++ actual' '@@ -1,5 +1,5 @@' '-  %b = exp(%a)' '+  %b = relu(%a)' '-wrong' '2 cases, 2 failed'; do
  grep -qF -- "$line" "$work/out" || fail "no line '$line' in: $(cat "$work/out")"
done
HEDDLE_UPDATE=1 "$runner" "$file" >"$work/out"
cmp -s "$file" "$work/right" || fail "--update gives another file: $(cat "$file")"

cat >"$file" <<'TEXT'
=== frame: each line is tried alone
options: only=none
fusion f(%a: f32[t]) {
  %b = ...
  return %b
}
--- each
relu(%b)
relu(%a, %a)

exp(%a)
--- expected
relu(%b)
    case:2:13: found '%b', expected a value defined above
relu(%a, %a)
    case:2: relu at line 2 takes 1 operand(s), got 2
exp(%a)
    fusion f(%a: f32[t]) {
      %b = exp(%a)
      return %b
    }
TEXT
cp "$file" "$work/right"
"$runner" "$file" >"$work/out" || fail "the frame fails: $(cat "$work/out")"
"$runner" --update "$file" >"$work/out"
cmp -s "$file" "$work/right" || fail "--update gives another frame: $(cat "$file")"

# refused TEXT MESSAGE: requires that a file with this text is refused with the message.
refused() {
  printf '%s' "$1" >"$file"
  if "$runner" "$file" >"$work/out" 2>&1; then fail "accepted: $1"; fi
  grep -qF -- "$2" "$work/out" || fail "no '$2' in: $(cat "$work/out")"
}
refused $'=== no sentence\nfusion f() {\n' 'expected `=== name: one sentence'
refused $'=== a: b\nfusion f() {\n' 'the last case has no'
refused $'=== a: b\nx\n--- error\ny\n=== a: c\nx\n--- error\ny\n' 'two cases are called "a"'
refused $'=== a: b\nx\n--- each\ny\n--- error\ny\n' 'has no `...`'
refused $'=== a: b\nx ...\n--- each\n--- error\ny\n' 'no line after `--- each`'
refused $'=== a: b\noptions: colour=red\nx\n--- error\ny\n' 'unknown option `colour=red`'
if "$runner" "$work/none.txt" 2>"$work/out"; then fail "a file that does not exist passes"; fi
echo "self_test: ok"

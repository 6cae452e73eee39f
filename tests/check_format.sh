#!/usr/bin/env bash
# Fails if clang-format would change a source file, and names each file that it would change.
# Argument: the root of the sources. Versions of clang-format differ in details. With a version
# other than the one in `wanted`, the check is skipped (77).
set -euo pipefail
cd "$1"

wanted=14
version=$(clang-format --version | sed -n 's/.*version \([0-9]*\).*/\1/p')
if [ "$version" != "$wanted" ]; then
  echo "check_format: skipped: clang-format $version is installed, the sources are formatted with $wanted"
  exit 77
fi

mapfile -d '' -t sources < <(find ir system codegen comm host tools tests examples bench \
  \( -name '*.cpp' -o -name '*.h' -o -name '*.cu' \) -print0)
printf '%s\0' "${sources[@]}" | xargs -0 -P "$(nproc)" -n 50 clang-format --dry-run --Werror
echo "check_format: ok, ${#sources[@]} files"

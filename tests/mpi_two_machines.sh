#!/usr/bin/env bash
# Runs a job of two ranks on two machines. The machines are two network namespaces, each with an
# address and a host name, connected by TCP. Skipped (77) if namespaces cannot be created.
# Arguments: the program and its arguments.
set -euo pipefail

a=heddleA$$ b=heddleB$$ work=
cleanup() {
  ip netns del "$a" 2>/dev/null || true
  ip netns del "$b" 2>/dev/null || true
  [ -z "$work" ] || rm -rf "$work"
}
trap cleanup EXIT

if ! reason=$( (ip netns add "$a" && ip netns add "$b" &&
  ip link add "a$$" netns "$a" type veth peer name "b$$" netns "$b" &&
  ip netns exec "$a" unshare --uts true) 2>&1); then
  echo "skipped: no network namespaces: $reason"
  exit 77
fi
ip -n "$a" addr add 10.213.7.1/24 dev "a$$"
ip -n "$b" addr add 10.213.7.2/24 dev "b$$"
for end in "$a a$$" "$b b$$"; do
  read -r host link <<<"$end"
  ip -n "$host" link set lo up
  ip -n "$host" link set "$link" up
done

# mpirun calls this script instead of ssh, with the arguments HOST COMMAND...
work=$(mktemp -d)
cat >"$work/agent" <<TEXT
#!/bin/sh
shift
exec ip netns exec $b unshare --uts sh -c "hostname $b; \$*"
TEXT
chmod +x "$work/agent"

# Shared memory is off, because ranks on different machines cannot share memory.
export OMPI_MCA_btl=self,tcp OMPI_MCA_plm_rsh_agent=$work/agent
export OMPI_MCA_btl_tcp_if_include=10.213.7.0/24 OMPI_MCA_oob_tcp_if_include=10.213.7.0/24
ip netns exec "$a" unshare --uts sh -c "hostname $a; exec \"\$@\"" sh \
  "${MPIEXEC:-mpirun}" --host 10.213.7.1:1,10.213.7.2:1 -n 2 "$@"

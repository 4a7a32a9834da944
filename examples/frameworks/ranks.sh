#!/usr/bin/env bash
# ranks.sh: ranks of torchrun, each under an `iket profile` of its own, with a folder of its own.
#
#   ranks.sh [COMMAND...]     by default: iket profile -o 'iket_output.%q{RANK}.%p' --
#
# The launcher starts iket, and iket the rank: so %q{RANK} is the rank's. The same with mpirun:
#
#   mpirun -n 2 iket profile -o 'out.%q{OMPI_COMM_WORLD_RANK}.%p' -- ./app
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
(($#)) || set -- "${IKET:-iket}" profile -o 'iket_output.%q{RANK}.%p' --
python3 -c "import torch" 2>/dev/null || {
  echo "no Python module torch"
  exit 77
}
# All of it is on this machine, whose name need not resolve.
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-1} GLOO_SOCKET_IFNAME=${GLOO_SOCKET_IFNAME:-lo}
# That is torchrun, whose own name is not always on PATH.
exec python3 -m torch.distributed.run --standalone --local-addr=127.0.0.1 --nproc-per-node=2 --no-python \
  "$@" python3 "$here/ranks.py"

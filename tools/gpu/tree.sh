# tree.sh: for the scripts of this folder, which stand in a packed tree's bin/tests too. Sets `tree`: the folder above
# the script's that has bin/iket, or $IKET_TREE.
tree=
for folder in "${IKET_TREE:-}" "$here/../.." "$here/.." "$here/../../build/release"; do
  if [[ -n $folder && -x $folder/bin/iket ]]; then
    tree=$(cd "$folder" && pwd)
    break
  fi
done
if [[ -z $tree ]]; then
  echo "$(basename "$0" .sh): no bin/iket near $here; set IKET_TREE" >&2
  exit 2
fi

# Runs a command in a mount namespace whose /dev has N GPUs. Usage: unshare -rm sh fake_gpus.sh N COMMAND...
set -eu
count=$1
shift
dev=$(mktemp -d)
mount -t tmpfs tmpfs "$dev"
for entry in /dev/*; do
  name=${entry##*/}
  case $name in
    nvidia[0-9]*) ;;
    *)
      if [ -L "$entry" ]; then
        cp -P "$entry" "$dev/$name"
      elif [ -d "$entry" ]; then
        mkdir "$dev/$name"
        mount --rbind "$entry" "$dev/$name"
      else
        : >"$dev/$name"
        mount --bind "$entry" "$dev/$name"
      fi
      ;;
  esac
done
i=0
while [ "$i" -lt "$count" ]; do
  : >"$dev/nvidia$i"
  i=$((i + 1))
done
mount --rbind "$dev" /dev
exec "$@"

#!/bin/sh
# The miniature from nothing, or from the state in DIR: train, export, check table. One card, about nine minutes.
#   sh benchmarks/miniature/all.sh DIR
# STAGES, BUDGET (seconds of training), SHARES, SCALE, CLIPS, JOBS may be set; TABLE=no stops after the export, which a
# machine without a card can follow with table and frames. A file DIR/PAUSE holds the training while it is there.
# Progress: DIR/train.log (lines with CHECK), DIR/table.log.
set -u
DIR=$1
M="python3 -m lowpeak.benchmarks.miniature"
mkdir -p "$DIR"
$M.train --stage "${STAGES:-all}" --out "$DIR" --budget-seconds "${BUDGET:-480}" --shares "${SHARES:-}" --scale "${SCALE:-1}" \
  >> "$DIR/train.log" 2>&1
$M.export --state "$DIR" --out "$DIR/checkpoint" > "$DIR/export.log" 2>&1
[ "${TABLE:-yes}" = no ] && exit 0
$M.table --checkpoint "$DIR/checkpoint" --out "$DIR/table.json" --clips "${CLIPS:-40}" \
  --jobs "${JOBS:-10}" --seconds "${TABLE_SECONDS:-60}" > "$DIR/table.log" 2>&1
$M.frames --checkpoint "$DIR/checkpoint" --out "$DIR/frames.png" --device "${DEVICE:-cuda}" \
  --canvas 512 --frames 39 >> "$DIR/table.log" 2>&1
echo done >> "$DIR/table.log"

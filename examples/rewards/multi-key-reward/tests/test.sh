#!/bin/bash
correctness=1
for i in 1 2 3 4 5 6 7 8 9 10; do
  [ "$(sed -n "${i}p" squares.txt)" = "$((i * i))" ] || correctness=0
done
case $(wc -l < squares.txt) in
  10) brevity=1 ;;
  11) brevity=0.5 ;;
  *) brevity=0 ;;
esac
echo "{\"correctness\": $correctness, \"brevity\": $brevity}" > /logs/verifier/reward.json

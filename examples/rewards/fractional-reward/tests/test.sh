#!/bin/bash
right=0
line=0
for want in apple banana cherry date; do
  line=$((line + 1))
  [ "$(sed -n "${line}p" fruits.txt)" = "$want" ] && right=$((right + 1))
done
echo "$right of 4 lines are right"
case $right in
  0) echo 0 ;; 1) echo 0.25 ;; 2) echo 0.5 ;; 3) echo 0.75 ;; 4) echo 1 ;;
esac > /logs/verifier/reward.txt

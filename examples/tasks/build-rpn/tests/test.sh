#!/bin/bash
echo 0 > /logs/verifier/reward.txt
bash build.sh || exit 0
check() {
  got=$(./rpn "$1")
  echo "$1 = $got, want $2"
  [ "$got" = "$2" ]
}
check '3 4 + 2 *' 14 && check '10 2 3 * -' 4 && check '7' 7 && echo 1 > /logs/verifier/reward.txt

#!/bin/bash
# Right, but with a remark that costs half of the brevity.
for i in 1 2 3 4 5 6 7 8 9 10; do echo $((i * i)); done > squares.txt
echo '# done' >> squares.txt

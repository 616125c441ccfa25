/* A decode step of an engine written in C, against the installed library. */
#include <stdio.h>

#include "headway/headway.h"

int decode_in_c(void);

int main(void) {
  const int line = decode_in_c();
  if (line != 0) fprintf(stderr, "c11.c:%d: %s\n", line, headway_last_error());
  return line == 0 ? 0 : 1;
}

/* Tests of what lasts until a process ends, such as limits: each in a child of its own. For systems with fork(). */

#ifndef CAPI_TESTS_CHILD_H
#define CAPI_TESTS_CHILD_H

#include "test.h"

#include <sys/wait.h>
#include <unistd.h>

/* What a child returns if the system does not allow what it is to test. */
#define TEST_IMPOSSIBLE 99

/* Runs `work` in a child, for a minute at most; it returns 0 if all went well. */
static inline void test_in_child(int (*work)(void), const char *name) {
  int status = -1;
  pid_t child = fork();
  if (child == 0) {
    alarm(60);
    _exit(work());
  }
  CHECK(child > 0 && waitpid(child, &status, 0) == child);
  if (WIFEXITED(status) && WEXITSTATUS(status) == TEST_IMPOSSIBLE) {
    char text[200];
    snprintf(text, sizeof text, "%s, which is not possible here", name);
    test_skip(text);
    return;
  }
  if (!CHECK_INT(status, 0)) {
    printf("in %s\n", name);
  }
}

#define IN_CHILD(work) test_in_child(work, #work)

#endif /* CAPI_TESTS_CHILD_H */

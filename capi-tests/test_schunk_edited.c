/* What clients change in the metalayers that a super-chunk shows is what it has, as in the C library. */

#define NAME "test_schunk_edited"
#include "schunks.h"

static int32_t items[ITEMS] = {1, 2, 3};

/* A super-chunk with two metalayers of either kind. */
static blosc2_schunk *make_layered(int place, int nchunks) {
  blosc2_schunk *schunk = make(place, 0);
  CHECK_INT(blosc2_meta_add(schunk, "first", (uint8_t *)"0123456789", 10), 0);
  CHECK_INT(blosc2_meta_add(schunk, "second", (uint8_t *)"abcdef", 6), 1);
  append_chunks(schunk, nchunks);
  CHECK_INT(blosc2_vlmeta_add(schunk, "vl0", (uint8_t *)"zero", 4, NULL), 0);
  CHECK_INT(blosc2_vlmeta_add(schunk, "vl1", (uint8_t *)"eleven", 6, NULL), 1);
  return schunk;
}

static char *text(const char *bytes) {
  char *copy = test_alloc(strlen(bytes) + 1);
  return strcpy(copy, bytes);
}

static void rename_layer(blosc2_metalayer *layer, const char *name) {
  free(layer->name);
  layer->name = text(name);
}

/* What a getter found, for comparisons: the index and the content, which is released, or the code alone. */
static const char *found(int rc, uint8_t *content, int32_t len) {
  static char held[100];
  if (rc < 0) {
    sprintf(held, "%d", rc);
  } else {
    sprintf(held, "%d:%.*s", rc, len, (char *)content);
    free(content);
  }
  return held;
}

static const char *fixed(blosc2_schunk *schunk, const char *name) {
  uint8_t *content = NULL;
  int32_t len = 0;
  int rc = blosc2_meta_get(schunk, name, &content, &len);
  return found(rc, content, len);
}

static const char *variable(blosc2_schunk *schunk, const char *name) {
  uint8_t *content = NULL;
  int32_t len = 0;
  int rc = blosc2_vlmeta_get(schunk, name, &content, &len);
  return found(rc, content, len);
}

/* A copy, and what is in the buffer or on disk after a change. */
static blosc2_schunk *copied(blosc2_schunk *schunk) {
  blosc2_storage storage = BLOSC2_STORAGE_DEFAULTS;
  blosc2_schunk *copy = blosc2_schunk_copy(schunk, &storage);
  if (!CHECK(copy != NULL)) {
    exit(EXIT_FAILURE);
  }
  return copy;
}

static blosc2_schunk *stored(int place, blosc2_schunk *schunk) {
  blosc2_schunk *again;
  uint8_t *cframe;
  bool needs_free;
  int64_t len;
  CHECK(blosc2_schunk_append_buffer(schunk, items, BYTES) > 0);
  if (places[place].urlpath != NULL) {
    again = blosc2_schunk_open(places[place].urlpath);
  } else {
    len = blosc2_schunk_to_buffer(schunk, &cframe, &needs_free);
    REQUIRE(len > 0);
    again = blosc2_schunk_from_buffer(cframe, len, true);
    if (needs_free) {
      free(cframe);
    }
  }
  if (!CHECK(again != NULL)) {
    exit(EXIT_FAILURE);
  }
  return again;
}

static void contents_are_edited_in_place(int place) {
  blosc2_schunk *other, *schunk = make_layered(place, 2);
  memcpy(schunk->metalayers[0]->content, "XY", 2);
  other = copied(schunk);
  CHECK_STR(fixed(other, "first"), "0:XY23456789");
  blosc2_schunk_free(other);
  other = stored(place, schunk);
  CHECK_STR(fixed(other, "first"), "0:XY23456789");
  CHECK_STR(fixed(other, "second"), "1:abcdef");
  CHECK_STR(variable(other, "vl1"), "1:eleven");
  blosc2_schunk_free(other);
  CHECK_INT(blosc2_meta_update(schunk, "first", (uint8_t *)"ab", 2), 0);
  CHECK_STR(fixed(schunk, "first"), "0:ab23456789");
  release(place, schunk);
}

static void contents_are_exchanged(int place) {
  blosc2_metalayer *layer;
  blosc2_schunk *other, *schunk = make_layered(place, 2);
  free(schunk->metalayers[1]->content);
  schunk->metalayers[1]->content = (uint8_t *)text("fedcba");
  layer = schunk->vlmetalayers[0];
  free(layer->content);
  layer->content_len = schunk->vlmetalayers[1]->content_len;
  layer->content = test_alloc((size_t)layer->content_len);
  memcpy(layer->content, schunk->vlmetalayers[1]->content, (size_t)layer->content_len);
  CHECK_STR(variable(schunk, "vl0"), "0:eleven");
  other = stored(place, schunk);
  CHECK_STR(fixed(other, "second"), "1:fedcba");
  CHECK_STR(variable(other, "vl0"), "0:eleven");
  blosc2_schunk_free(other);
  /* What is no chunk is nothing to get. */
  memset(layer->content, 255, (size_t)layer->content_len);
  CHECK_STR(variable(schunk, "vl0"), "-3");
  CHECK_STR(variable(schunk, "vl1"), "1:eleven");
  CHECK_INT(blosc2_vlmeta_update(schunk, "vl0", (uint8_t *)"new", 3, NULL), 0);
  CHECK(schunk->vlmetalayers[0] == layer);
  CHECK_STR(variable(schunk, "vl0"), "0:new");
  release(place, schunk);
}

static void layers_are_renamed_and_reordered(int place) {
  blosc2_metalayer *layer;
  blosc2_schunk *other, *schunk = make_layered(place, 2);
  rename_layer(schunk->vlmetalayers[0], "renamed");
  CHECK_INT(blosc2_vlmeta_exists(schunk, "renamed"), 0);
  CHECK_INT(blosc2_vlmeta_exists(schunk, "vl0"), BLOSC2_ERROR_NOT_FOUND);
  CHECK_STR(variable(schunk, "renamed"), "0:zero");
  CHECK_INT(blosc2_vlmeta_add(schunk, "vl0", (uint8_t *)"again", 5, NULL), 2);
  rename_layer(schunk->metalayers[1], "latter");
  CHECK_INT(blosc2_meta_update(schunk, "second", (uint8_t *)"Q", 1), BLOSC2_ERROR_NOT_FOUND);
  CHECK_INT(blosc2_meta_update(schunk, "latter", (uint8_t *)"Q", 1), 1);
  layer = schunk->vlmetalayers[0];
  schunk->vlmetalayers[0] = schunk->vlmetalayers[1];
  schunk->vlmetalayers[1] = layer;
  CHECK_INT(blosc2_vlmeta_update(schunk, "renamed", (uint8_t *)"new", 3, NULL), 1);
  other = stored(place, schunk);
  CHECK_STR(fixed(other, "latter"), "1:Qbcdef");
  CHECK_STR(variable(other, "vl1"), "0:eleven");
  CHECK_STR(variable(other, "renamed"), "1:new");
  CHECK_STR(variable(other, "vl0"), "2:again");
  blosc2_schunk_free(other);
  release(place, schunk);
}

static void layers_come_and_go(int place) {
  blosc2_metalayer *layer = test_alloc(sizeof *layer), *last;
  blosc2_schunk *other, *schunk = make_layered(place, 2);
  last = schunk->vlmetalayers[1];
  *layer = *last;
  layer->name = text("manual");
  layer->content = test_alloc((size_t)layer->content_len);
  memcpy(layer->content, last->content, (size_t)layer->content_len);
  schunk->vlmetalayers[schunk->nvlmetalayers++] = layer;
  CHECK_STR(variable(schunk, "manual"), "2:eleven");
  CHECK_INT(blosc2_vlmeta_add(schunk, "vl3", (uint8_t *)"three", 5, NULL), 3);
  CHECK_INT(blosc2_vlmeta_delete(schunk, "vl0"), 3);
  other = stored(place, schunk);
  CHECK_STR(variable(other, "manual"), "1:eleven");
  CHECK_STR(variable(other, "vl3"), "2:three");
  blosc2_schunk_free(other);
  /* The client lets go of the last one, and keeps it. */
  last = schunk->vlmetalayers[--schunk->nvlmetalayers];
  CHECK_INT(blosc2_vlmeta_exists(schunk, "vl3"), BLOSC2_ERROR_NOT_FOUND);
  other = stored(place, schunk);
  CHECK_INT(other->nvlmetalayers, 2);
  blosc2_schunk_free(other);
  CHECK_STR(last->name, "vl3");
  free(last->name);
  free(last->content);
  free(last);
  CHECK_INT(blosc2_vlmeta_add(schunk, "vl4", (uint8_t *)"four", 4, NULL), 2);
  release(place, schunk);
}

/* What cannot be a metalayer is an error, and harms nothing. */
static void nonsense_is_refused(int place) {
  blosc2_metalayer *layer;
  char *name, *long_name = text("a name that is longer than thirty-one bytes"), *same_name = text("vl0");
  uint8_t *content;
  int i;
  blosc2_schunk *other, *schunk = make_layered(place, 2);
  layer = schunk->vlmetalayers[1];
  name = layer->name;
  content = layer->content;
  for (i = 0; i < 7; i++) {
    int32_t content_len = layer->content_len;
    switch (i) {
      case 0: layer->name = NULL; break;
      case 1: layer->name = long_name; break;
      case 2: layer->content = NULL; break;
      case 3: layer->content_len = -5; break;
      case 4: schunk->vlmetalayers[1] = NULL; break;
      case 5: layer->name = same_name; break;
      default: schunk->nvlmetalayers = -1; break;
    }
    if (i == 2 || i == 3) {
      CHECK_INT(blosc2_vlmeta_exists(schunk, "vl1"), 1);
      CHECK_STR(variable(schunk, "vl1"), "-12");
    } else {
      CHECK_INT(blosc2_vlmeta_exists(schunk, "vl1"), BLOSC2_ERROR_INVALID_PARAM);
    }
    CHECK(blosc2_vlmeta_add(schunk, "new", (uint8_t *)"new", 3, NULL) < 0 || i == 2 || i == 3);
    CHECK(blosc2_vlmeta_delete(schunk, "new") < 0 || i == 2 || i == 3);
    CHECK_INT(blosc2_schunk_append_buffer(schunk, items, BYTES), place == 0 ? 3 + i : BLOSC2_ERROR_INVALID_PARAM);
    CHECK_INT(blosc2_schunk_decompress_chunk(schunk, 1, items, BYTES), BYTES);
    schunk->vlmetalayers[1] = layer;
    schunk->nvlmetalayers = 2;
    layer->name = name;
    layer->content = content;
    layer->content_len = content_len;
    CHECK_STR(variable(schunk, "vl1"), "1:eleven");
  }
  free(long_name);
  free(same_name);
  /* The chunks of a frame are behind its header. */
  schunk->metalayers[0]->content_len = 4;
  CHECK_INT(blosc2_schunk_append_buffer(schunk, items, BYTES), place == 0 ? 10 : BLOSC2_ERROR_INVALID_PARAM);
  schunk->metalayers[0]->content_len = 10;
  other = stored(place, schunk);
  CHECK_STR(fixed(other, "first"), "0:0123456789");
  CHECK_STR(variable(other, "vl0"), "0:zero");
  CHECK_STR(variable(other, "vl1"), "1:eleven");
  blosc2_schunk_free(other);
  release(place, schunk);
}

/* Nothing is left of what was in the outputs if the content cannot be decompressed. */
static void damaged_contents_reset_the_outputs(int place) {
  blosc2_schunk *schunk = make_layered(place, 2);
  blosc2_cparams cparams = BLOSC2_CPARAMS_DEFAULTS;
  blosc2_metalayer *layer;
  uint8_t ramp[2000], *content = ramp;
  int32_t i, len = 7;
  for (i = 0; i < 2000; i++) {
    ramp[i] = (uint8_t)(i / 40);
  }
  cparams.compcode = BLOSC_ZSTD;
  cparams.typesize = 1;
  CHECK_INT(blosc2_vlmeta_add(schunk, "ramp", ramp, 2000, &cparams), 2);
  layer = schunk->vlmetalayers[2];
  CHECK(layer->content_len > 40 && layer->content_len < 1000);
  memset(layer->content + 36, 0x22, (size_t)layer->content_len - 36);
  CHECK_INT(blosc2_vlmeta_get(schunk, "ramp", &content, &len), BLOSC2_ERROR_READ_BUFFER);
  CHECK(content == NULL);
  CHECK_INT(len, 0);
  release(place, schunk);
}

static void changes_of_other_handles_come_first(void) {
  blosc2_schunk *schunk = make_layered(2, 2), *other = blosc2_schunk_open(FILE_PATH);
  CHECK_INT(blosc2_vlmeta_add(other, "theirs", (uint8_t *)"t", 1, NULL), 2);
  rename_layer(schunk->vlmetalayers[0], "mine");
  CHECK_INT(blosc2_vlmeta_exists(schunk, "theirs"), 2);
  CHECK_INT(blosc2_vlmeta_exists(schunk, "mine"), BLOSC2_ERROR_NOT_FOUND);
  CHECK_STR(schunk->vlmetalayers[0]->name, "vl0");
  blosc2_schunk_free(other);
  release(2, schunk);
}

/* Of very many, those that are named are looked at. */
static void one_of_thousands_is_edited(void) {
  char name[20] = "";
  int i;
  blosc2_schunk *other, *schunk = make_layered(0, 0);
  for (i = 2; i < 3000; i++) {
    sprintf(name, "vl%d", i);
    CHECK_INT(blosc2_vlmeta_add(schunk, name, (uint8_t *)name, 6, NULL), i);
  }
  rename_layer(schunk->vlmetalayers[2000], "renamed");
  CHECK_INT(blosc2_vlmeta_exists(schunk, "vl2000"), BLOSC2_ERROR_NOT_FOUND);
  CHECK_STR(variable(schunk, "renamed"), "2000:vl2000");
  rename_layer(schunk->vlmetalayers[2001], "renamed too");
  other = copied(schunk);
  CHECK_STR(variable(other, "renamed too"), "2001:vl2001");
  blosc2_schunk_free(other);
  release(0, schunk);
}

int main(void) {
  int place;
  blosc2_init();
  for (place = 0; place < NPLACES; place++) {
    contents_are_edited_in_place(place);
    contents_are_exchanged(place);
    layers_are_renamed_and_reordered(place);
    layers_come_and_go(place);
    nonsense_is_refused(place);
    damaged_contents_reset_the_outputs(place);
  }
  changes_of_other_handles_come_first();
  one_of_thousands_is_edited();
  blosc2_destroy();
  return test_end();
}

// A C++ program: the headers give the functions C linkage, and the defaults initialise structs.

#include <b2nd.h>

#include <cstring>
#include <vector>

int main() {
  blosc2_cparams cparams = BLOSC2_CPARAMS_DEFAULTS;
  cparams.compcode = BLOSC_ZSTD;
  cparams.typesize = sizeof(double);
  blosc2_dparams dparams = BLOSC2_DPARAMS_DEFAULTS;
  std::vector<double> data(10000), back(10000);
  for (std::size_t i = 0; i < data.size(); i++) {
    data[i] = static_cast<double>(i) / 7;
  }
  const int32_t nbytes = static_cast<int32_t>(data.size() * sizeof(double));
  std::vector<unsigned char> chunk(static_cast<std::size_t>(nbytes) + BLOSC2_MAX_OVERHEAD);
  blosc2_context *cctx = blosc2_create_cctx(cparams);
  blosc2_context *dctx = blosc2_create_dctx(dparams);
  const int cbytes = blosc2_compress_ctx(cctx, data.data(), nbytes, chunk.data(), static_cast<int32_t>(chunk.size()));
  const int done = cbytes > 0 ? blosc2_decompress_ctx(dctx, chunk.data(), cbytes, back.data(), nbytes) : -1;
  blosc2_free_ctx(cctx);
  blosc2_free_ctx(dctx);
  return done == nbytes && cbytes < nbytes && data == back ? 0 : 1;
}

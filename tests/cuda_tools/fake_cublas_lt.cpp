// A cublasLt whose device is the host: matrix products as cublasLt.h describes them, computed by
// plain loops. It refuses what the header calls invalid, and what a GPU would get wrong in silence:
// operands less aligned than was promised, another problem than the algorithm was chosen for, a
// workspace that is too small. What is not needed here is not supported.
//
// fake_cublas_lt.py writes the header's constants above this text.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <vector>

using Sizes = std::map<int, size_t>;

struct Object {
  int kind;
  std::map<int, std::string> values;

  template <class T>
  T get(int attribute, T otherwise = 0) const {
    auto found = values.find(attribute);
    T value = otherwise;
    if (found != values.end()) std::memcpy(&value, found->second.data(), sizeof value);
    return value;
  }
};

enum { HANDLE = 71, LAYOUT, MATMUL, PREFERENCE };

struct Layout : Object {
  int type;
  uint64_t rows, columns;
  int64_t leading;
  int32_t batch() const { return get<int32_t>(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, 1); }
  int64_t stride() const { return get<int64_t>(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET); }
};

struct Matmul : Object {
  int compute, scale;
  int32_t transposed_a() const { return get<int32_t>(CUBLASLT_MATMUL_DESC_TRANSA); }
  int32_t transposed_b() const { return get<int32_t>(CUBLASLT_MATMUL_DESC_TRANSB); }
  uint32_t epilogue() const {
    return get<uint32_t>(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_DEFAULT);
  }
  char* bias() const { return (char*)get<uint64_t>(CUBLASLT_MATMUL_DESC_BIAS_POINTER); }
  char* aux() const { return (char*)get<uint64_t>(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER); }
  int64_t aux_leading() const { return get<int64_t>(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD); }
};

struct Algorithm {
  uint64_t problem, workspace, alignment[5], magic;  // of A, B, C and D, bias, aux
};

struct Result {
  Algorithm algorithm;
  size_t workspace;
  int state;
  float waves;
  int reserved[4];
};

// What a test may look at, and the failure that it orders.
struct Log {
  int64_t live, heuristics, matmuls;
  int64_t compute, scale, epilogue, batch;                       // of the last product
  int64_t reductions, workspace_limit, alignment[4], workspace;  // of the last choice
  int64_t fail_status;
  char fail_function[64];
};
extern "C" {
Log fake_log;
}

static bool failing(const char* function, int* status) {
  if (std::strcmp(fake_log.fail_function, function) != 0) return false;
  fake_log.fail_function[0] = 0;
  *status = (int)fake_log.fail_status;
  return true;
}

#define ENTER()                                     \
  int ordered_status = 0;                           \
  if (failing(__func__, &ordered_status)) return ordered_status

#define CHECK(condition, status) \
  if (!(condition)) return status

// -- objects --------------------------------------------------------------------------------------

template <class T>
static int make(T** where, T object) {
  CHECK(where, CUBLAS_STATUS_INVALID_VALUE);
  *where = new T(object);
  fake_log.live++;
  return CUBLAS_STATUS_SUCCESS;
}

template <class T>
static int destroy(T* object, int kind) {
  CHECK(object && object->kind == kind, CUBLAS_STATUS_INVALID_VALUE);
  object->kind = 0;
  delete object;
  fake_log.live--;
  return CUBLAS_STATUS_SUCCESS;
}

static int set(Object* object, int kind, const Sizes& sizes, int attribute, const void* value,
               size_t size) {
  CHECK(object && object->kind == kind && value, CUBLAS_STATUS_INVALID_VALUE);
  auto known = sizes.find(attribute);
  CHECK(known != sizes.end() && known->second == size, CUBLAS_STATUS_INVALID_VALUE);
  object->values[attribute] = std::string((const char*)value, size);
  return CUBLAS_STATUS_SUCCESS;
}

static int get(Object* object, int kind, int attribute, void* value, size_t size, size_t* written) {
  CHECK(object && object->kind == kind, CUBLAS_STATUS_INVALID_VALUE);
  auto found = object->values.find(attribute);
  CHECK(found != object->values.end() && found->second.size() == size, CUBLAS_STATUS_INVALID_VALUE);
  std::memcpy(value, found->second.data(), size);
  if (written) *written = size;
  return CUBLAS_STATUS_SUCCESS;
}

static const Sizes layout_sizes = {
    {CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, 4}, {CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, 8}};
static const Sizes matmul_sizes = {
    {CUBLASLT_MATMUL_DESC_TRANSA, 4},       {CUBLASLT_MATMUL_DESC_TRANSB, 4},
    {CUBLASLT_MATMUL_DESC_EPILOGUE, 4},     {CUBLASLT_MATMUL_DESC_BIAS_POINTER, 8},
    {CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, 8}, {CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, 8}};
static const Sizes preference_sizes = {
    {CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, 8},
    {CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, 4},
    {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, 4},
    {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, 4},
    {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, 4},
    {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, 4}};

#define ATTRIBUTES(Name, KIND, sizes)                                                            \
  extern "C" int cublasLt##Name##SetAttribute(Object* object, int attribute, const void* value,  \
                                              size_t size) {                                     \
    ENTER();                                                                                     \
    return set(object, KIND, sizes, attribute, value, size);                                     \
  }                                                                                              \
  extern "C" int cublasLt##Name##GetAttribute(Object* object, int attribute, void* value,        \
                                              size_t size, size_t* written) {                    \
    return get(object, KIND, attribute, value, size, written);                                   \
  }                                                                                              \
  extern "C" int cublasLt##Name##Destroy(Object* object) {                                       \
    return object && object->kind == KIND ? destroy##Name(object) : CUBLAS_STATUS_INVALID_VALUE; \
  }

static int destroyMatrixLayout(Object* object) { return destroy((Layout*)object, LAYOUT); }
static int destroyMatmulDesc(Object* object) { return destroy((Matmul*)object, MATMUL); }
static int destroyMatmulPreference(Object* object) { return destroy(object, PREFERENCE); }

// A description as it is now, for a call that runs later; it does not count as one of the caller's.
extern "C" Object* fake_copy(Object* object) {
  if (object && object->kind == LAYOUT) return new Layout(*(Layout*)object);
  if (object && object->kind == MATMUL) return new Matmul(*(Matmul*)object);
  return nullptr;
}

extern "C" void fake_forget(Object* copy) {
  if (copy && copy->kind == LAYOUT) delete (Layout*)copy;
  else if (copy && copy->kind == MATMUL) delete (Matmul*)copy;
}

ATTRIBUTES(MatrixLayout, LAYOUT, layout_sizes)
ATTRIBUTES(MatmulDesc, MATMUL, matmul_sizes)
ATTRIBUTES(MatmulPreference, PREFERENCE, preference_sizes)

extern "C" int cublasLtCreate(Object** handle) {
  ENTER();
  CHECK(handle, CUBLAS_STATUS_INVALID_VALUE);
  *handle = new Object{HANDLE, {}};
  return CUBLAS_STATUS_SUCCESS;
}

extern "C" int cublasLtMatrixLayoutCreate(Layout** layout, int type, uint64_t rows,
                                          uint64_t columns, int64_t leading) {
  ENTER();
  return make(layout, Layout{{LAYOUT, {}}, type, rows, columns, leading});
}

extern "C" int cublasLtMatmulDescCreate(Matmul** matmul, int compute, int scale) {
  ENTER();
  return make(matmul, Matmul{{MATMUL, {}}, compute, scale});
}

extern "C" int cublasLtMatmulPreferenceCreate(Object** preference) {
  ENTER();
  return make(preference, Object{PREFERENCE, {}});
}

extern "C" size_t cublasLtGetVersion() { return 130000; }

extern "C" const char* cublasLtGetStatusName(int status) {
  auto found = status_names.find(status);
  return found == status_names.end() ? "CUBLAS_STATUS_UNKNOWN" : found->second;
}

extern "C" const char* cublasLtGetStatusString(int) { return "said by the fake"; }

// -- numbers --------------------------------------------------------------------------------------

static size_t bytes_of(int type) { return type == CUDA_R_64F ? 8 : type == CUDA_R_32F ? 4 : 2; }

static double from_half(uint16_t bits) {
  int exponent = bits >> 10 & 31, fraction = bits & 1023;
  double value = exponent == 31  ? (fraction ? NAN : INFINITY)
                 : exponent == 0 ? std::ldexp(fraction, -24)
                                 : std::ldexp(1024 + fraction, exponent - 25);
  return bits >> 15 ? -value : value;
}

static uint16_t to_half(double value) {
  uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  if (std::isnan(value)) return sign | 0x7e00;
  value = std::fabs(value);
  if (value >= 65520) return sign | 0x7c00;
  int exponent = value ? std::max(std::ilogb(value), -14) : -14;
  // A fraction that is rounded up to 2 carries into the exponent.
  auto fraction = (int)std::nearbyint(std::ldexp(value, 10 - exponent));
  return sign | (uint16_t)(fraction < 1024 ? fraction : ((exponent + 14) << 10) + fraction);
}

static float rounded(float value, int bits) {  // to nearest, the last `bits` of the fraction away
  uint32_t word;
  std::memcpy(&word, &value, 4);
  if (std::isfinite(value)) word += (1u << (bits - 1)) - 1 + (word >> bits & 1);
  word &= ~((1u << bits) - 1);
  std::memcpy(&value, &word, 4);
  return value;
}

static double load(const char* from, int64_t index, int type) {
  from += index * (int64_t)bytes_of(type);
  if (type == CUDA_R_64F) return *(const double*)from;
  if (type == CUDA_R_32F) return *(const float*)from;
  if (type == CUDA_R_16F) return from_half(*(const uint16_t*)from);
  uint32_t word = (uint32_t) * (const uint16_t*)from << 16;
  float value;
  std::memcpy(&value, &word, 4);
  return value;
}

static void store(char* to, int64_t index, int type, double value) {
  to += index * (int64_t)bytes_of(type);
  if (type == CUDA_R_64F) {
    *(double*)to = value;
  } else if (type == CUDA_R_32F) {
    *(float*)to = (float)value;
  } else if (type == CUDA_R_16F) {
    *(uint16_t*)to = to_half((float)value);
  } else {
    float narrow = rounded((float)value, 16);
    uint32_t word;
    std::memcpy(&word, &narrow, 4);
    *(uint16_t*)to = (uint16_t)(word >> 16);
  }
}

// -- what is computed -----------------------------------------------------------------------------

struct Problem {
  const Matmul* matmul;
  const Layout *a, *b, *c, *d;
  uint64_t m, n, k;
};

static uint32_t without_bias(uint32_t epilogue) {
  switch (epilogue) {
    case CUBLASLT_EPILOGUE_BIAS: return CUBLASLT_EPILOGUE_DEFAULT;
    case CUBLASLT_EPILOGUE_RELU_BIAS: return CUBLASLT_EPILOGUE_RELU;
    case CUBLASLT_EPILOGUE_GELU_BIAS: return CUBLASLT_EPILOGUE_GELU;
    case CUBLASLT_EPILOGUE_RELU_AUX_BIAS: return CUBLASLT_EPILOGUE_RELU_AUX;
    case CUBLASLT_EPILOGUE_GELU_AUX_BIAS: return CUBLASLT_EPILOGUE_GELU_AUX;
    case CUBLASLT_EPILOGUE_DRELU_BGRAD: return CUBLASLT_EPILOGUE_DRELU;
    case CUBLASLT_EPILOGUE_DGELU_BGRAD: return CUBLASLT_EPILOGUE_DGELU;
    case CUBLASLT_EPILOGUE_BGRADA: return CUBLASLT_EPILOGUE_DEFAULT;
    case CUBLASLT_EPILOGUE_BGRADB: return CUBLASLT_EPILOGUE_DEFAULT;
    default: return epilogue;
  }
}

static bool sums_gradient(uint32_t epilogue) {
  return epilogue == CUBLASLT_EPILOGUE_DRELU_BGRAD || epilogue == CUBLASLT_EPILOGUE_DGELU_BGRAD;
}

static bool is_mask(uint32_t activation) {
  return activation == CUBLASLT_EPILOGUE_RELU_AUX || activation == CUBLASLT_EPILOGUE_DRELU;
}

static bool has_aux(uint32_t activation) {
  return is_mask(activation) || activation == CUBLASLT_EPILOGUE_GELU_AUX ||
         activation == CUBLASLT_EPILOGUE_DGELU;
}

static int understand(Problem* p, const Matmul* matmul, const Layout* a, const Layout* b,
                      const Layout* c, const Layout* d) {
  CHECK(matmul && matmul->kind == MATMUL, CUBLAS_STATUS_INVALID_VALUE);
  for (auto layout : {a, b, c, d}) {
    CHECK(layout && layout->kind == LAYOUT, CUBLAS_STATUS_INVALID_VALUE);
    CHECK(layout->rows && layout->columns, CUBLAS_STATUS_INVALID_VALUE);
    CHECK(layout->leading >= (int64_t)layout->rows, CUBLAS_STATUS_INVALID_VALUE);
    CHECK(layout->batch() >= 1 && layout->batch() == d->batch(), CUBLAS_STATUS_INVALID_VALUE);
    CHECK(layout->type == d->type, CUBLAS_STATUS_NOT_SUPPORTED);
  }
  bool swap_a = matmul->transposed_a() == CUBLAS_OP_T, swap_b = matmul->transposed_b() == CUBLAS_OP_T;
  *p = {matmul, a, b, c, d, d->rows, d->columns, swap_a ? a->rows : a->columns};
  CHECK((swap_a ? a->columns : a->rows) == p->m, CUBLAS_STATUS_INVALID_VALUE);
  CHECK((swap_b ? b->rows : b->columns) == p->n, CUBLAS_STATUS_INVALID_VALUE);
  CHECK((swap_b ? b->columns : b->rows) == p->k, CUBLAS_STATUS_INVALID_VALUE);
  CHECK(c->rows == p->m && c->columns == p->n, CUBLAS_STATUS_INVALID_VALUE);
  bool wide = d->type == CUDA_R_64F;
  CHECK(matmul->scale == (wide ? CUDA_R_64F : CUDA_R_32F), CUBLAS_STATUS_NOT_SUPPORTED);
  bool tf32 = matmul->compute == CUBLAS_COMPUTE_32F_FAST_TF32;
  CHECK(!tf32 || d->type == CUDA_R_32F, CUBLAS_STATUS_NOT_SUPPORTED);
  CHECK(tf32 || matmul->compute == (wide ? CUBLAS_COMPUTE_64F : CUBLAS_COMPUTE_32F),
        CUBLAS_STATUS_NOT_SUPPORTED);
  uint32_t epilogue = matmul->epilogue(), activation = without_bias(epilogue);
  if (epilogue == CUBLASLT_EPILOGUE_DEFAULT) return CUBLAS_STATUS_SUCCESS;
  CHECK(!wide, CUBLAS_STATUS_NOT_SUPPORTED);
  CHECK(epilogue == activation || matmul->bias(), CUBLAS_STATUS_INVALID_VALUE);
  bool sums = sums_gradient(epilogue) || epilogue == CUBLASLT_EPILOGUE_BGRADA ||
              epilogue == CUBLASLT_EPILOGUE_BGRADB;
  CHECK(!(sums || has_aux(activation)) || d->batch() == 1, CUBLAS_STATUS_NOT_SUPPORTED);
  if (!has_aux(activation)) return CUBLAS_STATUS_SUCCESS;
  CHECK(matmul->aux() && matmul->aux_leading() >= (int64_t)p->m, CUBLAS_STATUS_INVALID_VALUE);
  CHECK(matmul->aux_leading() % (is_mask(activation) ? 128 : 8) == 0, CUBLAS_STATUS_INVALID_VALUE);
  return CUBLAS_STATUS_SUCCESS;
}

static uint64_t fingerprint(const Problem& p) {
  uint64_t hash = 14695981039346656037u;
  auto add = [&](uint64_t word) { hash = (hash ^ word) * 1099511628211u; };
  for (auto layout : {p.a, p.b, p.c, p.d})
    for (uint64_t word : {(uint64_t)layout->type, layout->rows, layout->columns,
                          (uint64_t)layout->leading, (uint64_t)layout->batch(),
                          (uint64_t)layout->stride()})
      add(word);
  for (int word : {p.matmul->compute, p.matmul->scale, (int)p.matmul->epilogue(),
                   (int)p.matmul->transposed_a(), (int)p.matmul->transposed_b()})
    add((uint64_t)word);
  return hash;
}

// The largest power of two up to 256 that the address is a multiple of.
static uint64_t alignment_of(const void* address) {
  uint64_t low = (uint64_t)address | 256;
  return low & -low;
}

static constexpr uint64_t MAGIC = 0x746c6e6f69736c66;

extern "C" int cublasLtMatmulAlgoGetHeuristic(Object* handle, Matmul* matmul, Layout* a, Layout* b,
                                              Layout* c, Layout* d, Object* preference, int wanted,
                                              Result* results, int* count) {
  ENTER();
  fake_log.heuristics++;
  CHECK(handle && handle->kind == HANDLE, CUBLAS_STATUS_NOT_INITIALIZED);
  CHECK(preference && preference->kind == PREFERENCE, CUBLAS_STATUS_INVALID_VALUE);
  CHECK(wanted > 0 && results && count, CUBLAS_STATUS_INVALID_VALUE);
  Problem p;
  int status = understand(&p, matmul, a, b, c, d);
  if (status) return status;
  Algorithm algorithm = {fingerprint(p), 0, {}, MAGIC};
  int attribute = CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES;
  for (int operand = 0; operand < 4; operand++) {
    auto aligned = preference->get<uint32_t>(attribute + operand, 256);
    CHECK(aligned && !(aligned & (aligned - 1)), CUBLAS_STATUS_INVALID_VALUE);
    fake_log.alignment[operand] = aligned;
  }
  CHECK(fake_log.alignment[2] == fake_log.alignment[3], CUBLAS_STATUS_NOT_SUPPORTED);
  std::copy_n(fake_log.alignment, 3, algorithm.alignment);
  algorithm.alignment[3] = alignment_of(matmul->bias());
  algorithm.alignment[4] = alignment_of(matmul->aux());
  auto reductions = preference->get<uint32_t>(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, 7);
  auto limit = preference->get<uint64_t>(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES);
  // A long sum is cut in two, if its parts can be kept.
  uint64_t parts = 2 * sizeof(double) * p.m * p.n;
  if (p.k >= 64 && (reductions & CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE) && parts <= limit)
    algorithm.workspace = parts;
  fake_log.reductions = reductions;
  fake_log.workspace_limit = (int64_t)limit;
  fake_log.workspace = (int64_t)algorithm.workspace;
  results[0] = {algorithm, algorithm.workspace, CUBLAS_STATUS_SUCCESS, 1, {}};
  *count = 1;
  return CUBLAS_STATUS_SUCCESS;
}

// -- computing ------------------------------------------------------------------------------------

// op(X) as rows of numbers, rounded as the tensor cores do.
static std::vector<double> operand(const char* from, const Layout* layout, int transposed,
                                   int compute) {
  uint64_t rows = layout->rows, columns = layout->columns;
  std::vector<double> values(rows * columns);
  for (uint64_t i = 0; i < rows; i++)
    for (uint64_t j = 0; j < columns; j++) {
      double value = load(from, (int64_t)i + (int64_t)j * layout->leading, layout->type);
      if (compute == CUBLAS_COMPUTE_32F_FAST_TF32) value = rounded((float)value, 13);
      values[transposed ? j * rows + i : i * columns + j] = value;
    }
  return values;
}

template <class T>
static void sum_products(const Problem& p, const std::vector<double>& a,
                         const std::vector<double>& b, uint64_t from, uint64_t to, double* sums) {
  std::vector<T> row(p.n);
  for (uint64_t i = 0; i < p.m; i++) {
    std::fill(row.begin(), row.end(), T(0));
    for (uint64_t l = from; l < to; l++) {
      T left = (T)a[i * p.k + l];
      const double* right = &b[l * p.n];
      for (uint64_t j = 0; j < p.n; j++) row[j] += left * (T)right[j];
    }
    std::copy(row.begin(), row.end(), sums + i * p.n);
  }
}

static double gelu_slope(double x, bool derivative) {
  const double scale = 0.7978845608028654, cubic = 0.044715;  // sqrt(2 / pi)
  double t = std::tanh(scale * (x + cubic * x * x * x));
  if (!derivative) return 0.5 * x * (1 + t);
  return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * scale * (1 + 3 * cubic * x * x);
}

static double activated(const Problem& p, double value, uint64_t i, uint64_t j) {
  char* aux = p.matmul->aux();
  int64_t at = (int64_t)i + (int64_t)j * p.matmul->aux_leading();
  uint32_t activation = without_bias(p.matmul->epilogue());
  switch (activation) {
    case CUBLASLT_EPILOGUE_RELU_AUX:
      aux[at / 8] = (char)((aux[at / 8] & ~(1 << at % 8)) | ((value > 0) << at % 8));
      [[fallthrough]];
    case CUBLASLT_EPILOGUE_RELU: return value < 0 ? 0 : value;
    case CUBLASLT_EPILOGUE_DRELU: return aux[at / 8] >> at % 8 & 1 ? value : 0;
    case CUBLASLT_EPILOGUE_GELU_AUX: store(aux, at, p.d->type, value); [[fallthrough]];
    case CUBLASLT_EPILOGUE_GELU: return gelu_slope(value, false);
    case CUBLASLT_EPILOGUE_DGELU: return value * gelu_slope(load(aux, at, p.d->type), true);
    default: return value;
  }
}

static void store_sums(const Problem& p, const std::vector<double>& values, uint64_t rows,
                       uint64_t columns, bool along_rows) {
  for (uint64_t i = 0; i < (along_rows ? rows : columns); i++) {
    double sum = 0;
    for (uint64_t j = 0; j < (along_rows ? columns : rows); j++)
      sum += values[along_rows ? i * columns + j : j * columns + i];
    store(p.matmul->bias(), (int64_t)i, p.d->type, sum);
  }
}

static void multiply(const Problem& p, const Algorithm& algorithm, double alpha, double beta,
                     const char* from_a, const char* from_b, const char* from_c, char* to,
                     char* workspace) {
  auto a = operand(from_a, p.a, p.matmul->transposed_a() == CUBLAS_OP_T, p.matmul->compute);
  auto b = operand(from_b, p.b, p.matmul->transposed_b() == CUBLAS_OP_T, p.matmul->compute);
  uint32_t epilogue = p.matmul->epilogue();
  std::vector<double> kept(2 * p.m * p.n);
  double* sums = algorithm.workspace ? (double*)workspace : kept.data();
  auto sum = p.d->type == CUDA_R_64F ? sum_products<double> : sum_products<float>;
  uint64_t middle = algorithm.workspace ? p.k / 2 : p.k, mn = p.m * p.n;
  sum(p, a, b, 0, middle, sums);
  sum(p, a, b, middle, p.k, sums + mn);
  std::vector<double> results(mn);
  for (uint64_t i = 0; i < p.m; i++)
    for (uint64_t j = 0; j < p.n; j++) {
      double value = alpha * (sums[i * p.n + j] + sums[mn + i * p.n + j]);
      if (beta) value += beta * load(from_c, (int64_t)i + (int64_t)j * p.c->leading, p.c->type);
      if ((epilogue & CUBLASLT_EPILOGUE_BIAS) && epilogue < CUBLASLT_EPILOGUE_BGRADA)
        value += load(p.matmul->bias(), (int64_t)i, p.d->type);
      results[i * p.n + j] = value = activated(p, value, i, j);
      store(to, (int64_t)i + (int64_t)j * p.d->leading, p.d->type, value);
    }
  if (sums_gradient(epilogue)) store_sums(p, results, p.m, p.n, true);
  if (epilogue == CUBLASLT_EPILOGUE_BGRADA) store_sums(p, a, p.m, p.k, true);
  if (epilogue == CUBLASLT_EPILOGUE_BGRADB) store_sums(p, b, p.k, p.n, false);
}

extern "C" int cublasLtMatmul(Object* handle, Matmul* matmul, const void* alpha, const char* a,
                              Layout* a_layout, const char* b, Layout* b_layout, const void* beta,
                              const char* c, Layout* c_layout, char* d, Layout* d_layout,
                              const Algorithm* algorithm, char* workspace, size_t workspace_bytes,
                              void*) {
  ENTER();
  fake_log.matmuls++;
  CHECK(handle && handle->kind == HANDLE, CUBLAS_STATUS_NOT_INITIALIZED);
  CHECK(alpha && beta && a && b && c && d, CUBLAS_STATUS_INVALID_VALUE);
  Problem p;
  int status = understand(&p, matmul, a_layout, b_layout, c_layout, d_layout);
  if (status) return status;
  CHECK(algorithm && algorithm->magic == MAGIC, CUBLAS_STATUS_INVALID_VALUE);
  CHECK(algorithm->problem == fingerprint(p), CUBLAS_STATUS_INVALID_VALUE);
  CHECK(workspace_bytes >= algorithm->workspace, CUBLAS_STATUS_INVALID_VALUE);
  CHECK(!algorithm->workspace || (workspace && (uint64_t)workspace % 256 == 0),
        CUBLAS_STATUS_INVALID_VALUE);
  const void* pointers[] = {a, b, c, matmul->bias(), matmul->aux()};
  for (int i = 0; i < 5; i++)
    CHECK((uint64_t)pointers[i] % algorithm->alignment[i] == 0, CUBLAS_STATUS_EXECUTION_FAILED);
  CHECK((uint64_t)d % algorithm->alignment[2] == 0, CUBLAS_STATUS_EXECUTION_FAILED);
  // These it is not told of; kernels load vectors from there all the same.
  for (int i = 3; i < 5; i++)
    CHECK((uint64_t)pointers[i] % 16 == 0, CUBLAS_STATUS_EXECUTION_FAILED);
  fake_log.compute = matmul->compute;
  fake_log.scale = matmul->scale;
  fake_log.epilogue = matmul->epilogue();
  fake_log.batch = d_layout->batch();
  bool wide = matmul->scale == CUDA_R_64F;
  double times = wide ? *(const double*)alpha : *(const float*)alpha;
  double keep = wide ? *(const double*)beta : *(const float*)beta;
  for (int64_t item = 0; item < d_layout->batch(); item++) {
    auto start = [&](const Layout* layout) {
      return item * layout->stride() * (int64_t)bytes_of(layout->type);
    };
    multiply(p, *algorithm, times, keep, a + start(a_layout), b + start(b_layout),
             c + start(c_layout), d + start(d_layout), workspace);
  }
  return CUBLAS_STATUS_SUCCESS;
}

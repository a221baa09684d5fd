/* SPDX-License-Identifier: MIT */
/* Tests the planning of the initial domain: layouts, their limits, and the size option. */
#include <CUnit/Basic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <xen/xen.h>

#include "build/layout.h"

#define MIB         (1ull << 20)
#define GIB         (1ull << 30)
#define PAGES(b)    ((u64)(b) >> PAGE_SHIFT)
#define LINUX_VIRT  0xffffffff80000000ull
#define LINUX_P2M   0x8000000000ull

/* The figures of Debian's 6.1 kernel. */
static struct layout_request linux_request(u64 bytes)
{
    return (struct layout_request){
        .virt_base = LINUX_VIRT, .image_start = 0x1000000, .image_end = 0x4a00000,
        .entry = 0xffffffff830791c0, .has_init_p2m = true, .init_p2m = LINUX_P2M,
        .mod_start_pfn = true, .mod_size = 5 * MIB + 123, .nr_pages = PAGES(bytes),
    };
}

/* A small kernel without notes: everything from address 0 on, inside the initial mapping. */
static struct layout_request small_request(u64 bytes)
{
    return (struct layout_request){
        .image_start = 0, .image_end = 0x34567, .entry = 0x100,
        .mod_size = 10000, .nr_pages = PAGES(bytes),
    };
}

/* What every plan promises, whatever was asked for. */
static void check_plan(const struct layout_request *rq, const struct layout *lo)
{
    u64 image_pages = PAGES(ROUND_UP(rq->image_end - rq->paddr_offset, PAGE_SIZE));
    u64 l1s = ((lo->v_end - 1) >> 21) - (lo->v_start >> 21) + 1;

    CU_ASSERT_EQUAL(lo->v_start, rq->virt_base);
    CU_ASSERT_EQUAL(lo->v_end & (4 * MIB - 1), 0);
    CU_ASSERT_EQUAL(lo->v_end - lo->v_start, lo->init_pages << PAGE_SHIFT);
    CU_ASSERT(lo->v_end - lo->stack_va >= 512 << 10);
    CU_ASSERT(lo->v_end - lo->stack_va < 512 * 1024 + 4 * MIB);
    CU_ASSERT_EQUAL(lo->v_start >> 30, (lo->v_end - 1) >> 30);
    /* Linear: a page's VA follows from its pfn. */
    CU_ASSERT_EQUAL(lo->start_info_va, lo->v_start + (lo->start_info_pfn << PAGE_SHIFT));
    CU_ASSERT_EQUAL(lo->pt_va, lo->v_start + (lo->pt_pfn << PAGE_SHIFT));
    CU_ASSERT_EQUAL(lo->nr_pt, 3 + l1s);
    /* In order, without overlap. */
    CU_ASSERT(lo->start_info_pfn >= image_pages);
    CU_ASSERT_EQUAL(lo->pt_pfn, lo->start_info_pfn + 1);
    CU_ASSERT_EQUAL(lo->stack_va, lo->pt_va + ((lo->nr_pt + 1) << PAGE_SHIFT));
    /* The list has room for all, and is where it says. */
    CU_ASSERT(lo->list_pages * 512 >= rq->nr_pages && (lo->list_pages - 1) * 512 < rq->nr_pages);
    if (rq->has_init_p2m) {
        u64 last = lo->list_va + (lo->list_pages << PAGE_SHIFT) - 1;

        CU_ASSERT_EQUAL(lo->list_va, rq->init_p2m);
        CU_ASSERT_EQUAL(lo->p2m_first_pfn, lo->init_pages);
        CU_ASSERT_EQUAL(lo->list_first_pfn, lo->p2m_first_pfn);
        CU_ASSERT_EQUAL(lo->p2m_table_pfn, lo->list_first_pfn + lo->list_pages);
        CU_ASSERT_EQUAL(lo->p2m_tables, 1 + (last >> 30) - (lo->list_va >> 30) + 1 +
                        (last >> 21) - (lo->list_va >> 21) + 1);
        CU_ASSERT_EQUAL(lo->p2m_frames, lo->list_pages + lo->p2m_tables);
    } else {
        CU_ASSERT_EQUAL(lo->p2m_frames, 0);
        CU_ASSERT_EQUAL(lo->p2m_tables, 0);
        CU_ASSERT_EQUAL(lo->list_va, lo->v_start + (lo->list_first_pfn << PAGE_SHIFT));
        CU_ASSERT_EQUAL(lo->list_first_pfn + lo->list_pages, lo->start_info_pfn);
    }
    CU_ASSERT_EQUAL(lo->mod_pages, PAGES(ROUND_UP(rq->mod_size, PAGE_SIZE)));
    if (rq->mod_size && rq->mod_start_pfn) {
        CU_ASSERT_EQUAL(lo->flags, SIF_PRIVILEGED | SIF_INITDOMAIN | SIF_MOD_START_PFN);
        CU_ASSERT_EQUAL(lo->mod_start, lo->mod_first_pfn);
        CU_ASSERT_EQUAL(lo->mod_first_pfn, lo->init_pages + lo->p2m_frames);
    } else {
        CU_ASSERT_EQUAL(lo->flags, SIF_PRIVILEGED | SIF_INITDOMAIN);
        if (rq->mod_size) {
            CU_ASSERT_EQUAL(lo->mod_start, lo->v_start + (lo->mod_first_pfn << PAGE_SHIFT));
            CU_ASSERT_EQUAL(lo->mod_first_pfn, image_pages);
            CU_ASSERT(lo->mod_first_pfn + lo->mod_pages <= lo->start_info_pfn);
        } else {
            CU_ASSERT_EQUAL(lo->mod_start, 0);
        }
    }
    CU_ASSERT(lo->init_pages + lo->p2m_frames <= rq->nr_pages);
    CU_ASSERT(lo->mod_first_pfn + lo->mod_pages <= rq->nr_pages);
    CU_ASSERT_EQUAL(lo->nr_pages, rq->nr_pages);
}

static void plan_ok(const struct layout_request *rq, struct layout *lo)
{
    struct layout_error err = { "none", 0, 0, false };
    int rc = layout_plan(rq, lo, &err);

    CU_ASSERT_EQUAL(rc, 0);
    if (rc)
        printf("\n    refused: %s (%#lx, %#lx)\n", err.rule, err.value, err.limit);
    else
        check_plan(rq, lo);
}

/* The plan must be refused with a rule that contains @word. */
static struct layout_error plan_bad(const struct layout_request *rq, const char *word)
{
    struct layout_error err = { "none", 0, 0, false };
    struct layout lo;

    CU_ASSERT_EQUAL(layout_plan(rq, &lo, &err), -1);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.rule, word));
    if (!strstr(err.rule, word))
        printf("\n    expected \"%s\", got \"%s\"\n", word, err.rule);
    return err;
}

/* The addresses that another hypervisor was seen to hand to this kernel. */
static void test_linux_known(void)
{
    struct layout_request rq = linux_request(1 * GIB);
    struct layout lo;

    plan_ok(&rq, &lo);
    CU_ASSERT_EQUAL(lo.start_info_va, 0xffffffff84a00000);
    CU_ASSERT_EQUAL(lo.pt_va, 0xffffffff84a01000);
    CU_ASSERT_EQUAL(lo.nr_pt, 41);
    CU_ASSERT_EQUAL(lo.stack_va, 0xffffffff84a2b000);
    CU_ASSERT_EQUAL(lo.v_end, 0xffffffff84c00000);
    CU_ASSERT_EQUAL(lo.list_pages, 512);
    CU_ASSERT_EQUAL(lo.p2m_tables, 3);
    CU_ASSERT_EQUAL(lo.mod_first_pfn, 0x4c00 + 515);
}

static void test_sizes(void)
{
    static const u64 bytes[] = {
        96 * MIB, 512 * MIB, 1 * GIB + 4096, 8 * GIB, 63 * GIB, 512 * GIB, 4096 * GIB,
    };
    struct layout lo;

    for (size_t i = 0; i < ARRAY_SIZE(bytes); i++)
        for (int mod = 0; mod < 3; mod++) {
            struct layout_request rq = linux_request(bytes[i]);

            rq.mod_size = mod ? rq.mod_size : 0;
            rq.mod_start_pfn = mod == 1;
            plan_ok(&rq, &lo);
        }
}

/* More than one L1 (above 1 GiB) and more than one L2 (above 512 GiB) for the list. */
static void test_own_list_tables(void)
{
    struct layout_request rq = linux_request(8 * GIB);
    struct layout lo;

    plan_ok(&rq, &lo);
    CU_ASSERT_EQUAL(lo.list_pages, 4096);
    CU_ASSERT_EQUAL(lo.p2m_tables, 1 + 1 + 8);
    rq = linux_request(1024 * GIB);
    plan_ok(&rq, &lo);
    CU_ASSERT_EQUAL(lo.p2m_tables, 1 + 2 + 1024);
    rq = linux_request(1 * GIB);
    rq.init_p2m = LINUX_P2M + GIB - 4096;      /* straddles everything */
    plan_ok(&rq, &lo);
    CU_ASSERT_EQUAL(lo.p2m_tables, 1 + 2 + 2);
}

static void test_list_in_map(void)
{
    struct layout_request rq = linux_request(8 * GIB);
    struct layout lo;

    rq.has_init_p2m = false;
    plan_ok(&rq, &lo);
    CU_ASSERT_EQUAL(lo.list_va, 0xffffffff84a00000);
    CU_ASSERT_EQUAL(lo.start_info_va, 0xffffffff85a00000);
    /* 8 bytes a page: at 512 GiB the list alone fills the GiB. */
    rq.nr_pages = PAGES(512 * GIB);
    plan_bad(&rq, "one GiB");
}

static void test_small_kernel(void)
{
    struct layout_request rq = small_request(32 * MIB);
    struct layout lo;

    plan_ok(&rq, &lo);
    CU_ASSERT_EQUAL(lo.mod_start, 0x35000);
    CU_ASSERT_EQUAL(lo.list_va, 0x38000);
    CU_ASSERT_EQUAL(lo.v_end, 4 * MIB);
    rq.mod_size = 0;
    plan_ok(&rq, &lo);
    /* A PADDR_OFFSET moves the pfns, not the size. */
    rq.paddr_offset = 0x100000;
    rq.image_start += 0x100000;
    rq.image_end += 0x100000;
    plan_ok(&rq, &lo);
    CU_ASSERT_EQUAL(lo.list_va, 0x35000);
}

/* Every image size in steps of a page over two rounding periods: the end and the tables always fit. */
static void test_rounding(void)
{
    struct layout_request rq = linux_request(256 * MIB);
    struct layout lo;

    for (u64 n = 0; n < 8 * MIB; n += PAGE_SIZE) {
        rq.image_end = 0x4a00000 + n;
        plan_ok(&rq, &lo);
    }
}

static void test_too_small(void)
{
    struct layout_request rq = linux_request(1 * GIB);
    struct layout_error err;
    struct layout lo;
    u64 need;

    plan_ok(&rq, &lo);
    rq.nr_pages = PAGES(64 * MIB);
    err = plan_bad(&rq, "first page tables");
    CU_ASSERT(err.memory);
    CU_ASSERT_EQUAL(err.limit, rq.nr_pages);
    need = err.value;
    CU_ASSERT(need > rq.nr_pages);
    /* The named need is exact when the p2m list stays the same size. */
    rq.nr_pages = need + 100;
    plan_ok(&rq, &lo);
    need = lo.mod_first_pfn + lo.mod_pages;
    rq.nr_pages = need;
    plan_ok(&rq, &lo);
    rq.nr_pages = need - 1;
    plan_bad(&rq, "first page tables");
    rq.nr_pages = 0;
    CU_ASSERT(plan_bad(&rq, "initrd").memory);
    rq.mod_size = 0;
    CU_ASSERT(plan_bad(&rq, "first page tables").memory);
    rq.has_init_p2m = false;
    CU_ASSERT(plan_bad(&rq, "first page tables").memory);
    rq.nr_pages = ~0ull;
    plan_bad(&rq, "memory of the domain");
    rq = linux_request(1 * GIB);
    rq.mod_size = 2 * GIB;
    plan_bad(&rq, "initrd");
    rq.mod_size = ~0ull;
    plan_bad(&rq, "initrd");
}

static void test_forged(void)
{
    struct layout_request rq = linux_request(1 * GIB), good = rq;
    struct layout lo;

    rq.paddr_offset = 0x2000000;
    plan_bad(&rq, "PADDR_OFFSET");
    rq = good;
    rq.image_end = rq.image_start;
    plan_bad(&rq, "empty");
    rq.image_end = ~0ull;
    plan_bad(&rq, "1 GiB");
    rq.image_end = GIB;           /* nothing left for the rest */
    plan_bad(&rq, "one GiB");
    rq = good;
    rq.virt_base = 0x800000000000;
    plan_bad(&rq, "guest address space");
    rq.virt_base = 0xffff800000000000;
    plan_bad(&rq, "guest address space");
    rq.virt_base = 0xffff87ffc0000000;
    plan_bad(&rq, "guest address space");
    rq.virt_base = LINUX_VIRT + 8;
    plan_bad(&rq, "page-aligned");
    rq.virt_base = 0xfffffffffc000000;      /* would wrap */
    plan_bad(&rq, "one GiB");
    rq = good;
    rq.entry = LINUX_VIRT + 0xffffff;
    plan_bad(&rq, "entry");
    rq.entry = LINUX_VIRT + 0x4a00000;
    plan_bad(&rq, "entry");
    rq = good;
    rq.has_hypercall_page = true;
    rq.hypercall_page = LINUX_VIRT + 0x49ff000;
    plan_ok(&rq, &lo);
    rq.hypercall_page += 8;
    plan_bad(&rq, "hypercall page");
    rq.hypercall_page = LINUX_VIRT + 0x4a00000;
    plan_bad(&rq, "hypercall page");
    rq.hypercall_page = LINUX_VIRT;
    plan_bad(&rq, "hypercall page");
    rq = good;
    rq.init_p2m = LINUX_P2M + 1;
    plan_bad(&rq, "INIT_P2M");
    rq.init_p2m = 0xffff800000000000;
    plan_bad(&rq, "L4 slot");
    rq.init_p2m = 0xffffff8000000000;
    plan_bad(&rq, "INIT_P2M");
    rq.init_p2m = 0x800000000000;
    plan_bad(&rq, "L4 slot");
    rq.init_p2m = 2 * LINUX_P2M - 4096;     /* leaves its slot */
    plan_bad(&rq, "L4 slot");
}

static u64 mem(const char *s, u64 available)
{
    struct mem_option opt;

    return mem_option_parse(s, &opt) ? mem_option_pages(&opt, available) : ~0ull;
}

static void test_mem_option(void)
{
    static const char *const bad[] = {
        "", "M", "-", "12Q", "1G,", ",1G", "min:", "1G,2G", "min:1,min:2", "1G max:2G", "max:-", "0x10M",
        "99999999999999999999", "18446744073709551615", "101%", "20000000T",
    };
    struct mem_option none = { 0 }, opt;
    u64 all = PAGES(4 * GIB);

    CU_ASSERT_EQUAL(mem_option_pages(&none, all), all);
    CU_ASSERT_EQUAL(mem("1G", all), PAGES(GIB));
    CU_ASSERT_EQUAL(mem("1024m", all), PAGES(GIB));
    CU_ASSERT_EQUAL(mem("1048576", all), PAGES(GIB));
    CU_ASSERT_EQUAL(mem("1048576B", all), PAGES(MIB));
    CU_ASSERT_EQUAL(mem("8G", all), all);
    CU_ASSERT_EQUAL(mem("1T", all), all);
    CU_ASSERT_EQUAL(mem("-1G", all), PAGES(3 * GIB));
    CU_ASSERT_EQUAL(mem("-5G", all), 0);
    CU_ASSERT_EQUAL(mem("25%", all), PAGES(GIB));
    CU_ASSERT_EQUAL(mem("100%", all), all);
    CU_ASSERT_EQUAL(mem("max:2G", all), PAGES(2 * GIB));
    CU_ASSERT_EQUAL(mem("min:2G", all), all);
    CU_ASSERT_EQUAL(mem("1G,min:2G,max:3G", all), PAGES(2 * GIB));
    CU_ASSERT_EQUAL(mem("max:3G,min:1G,-512M", all), PAGES(3 * GIB));
    CU_ASSERT_EQUAL(mem("min:9G,1G", all), all);
    CU_ASSERT_EQUAL(mem("max:-1G", all), PAGES(3 * GIB));
    CU_ASSERT_EQUAL(mem("0", all), 0);
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        CU_ASSERT_FALSE(mem_option_parse(bad[i], &opt));
        CU_ASSERT_EQUAL(mem_option_pages(&opt, all), all);
    }
}

int main(void)
{
    CU_pSuite suite;
    unsigned failures;

    if (CU_initialize_registry() != CUE_SUCCESS)
        return 2;
    suite = CU_add_suite("dom0_layout", NULL, NULL);
    CU_ADD_TEST(suite, test_linux_known);
    CU_ADD_TEST(suite, test_sizes);
    CU_ADD_TEST(suite, test_own_list_tables);
    CU_ADD_TEST(suite, test_list_in_map);
    CU_ADD_TEST(suite, test_small_kernel);
    CU_ADD_TEST(suite, test_rounding);
    CU_ADD_TEST(suite, test_too_small);
    CU_ADD_TEST(suite, test_forged);
    CU_ADD_TEST(suite, test_mem_option);
    CU_basic_set_mode(CU_BRM_VERBOSE);
    CU_basic_run_tests();
    failures = CU_get_number_of_failures();
    CU_cleanup_registry();
    return failures != 0;
}

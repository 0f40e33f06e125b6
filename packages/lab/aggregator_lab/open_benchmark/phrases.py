"""Phrases of the open benchmark in ten languages, written for it. Lists are separated by "|".

Equal positions say the same in every language. ``facts`` have a number ``{n}`` and a place ``{p}``.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Phrases:
    """Phrases of one language: 8 subjects, 6 verbs, 8 objects, 6 facts; ``order`` is that of a sentence."""

    subjects: str
    verbs: str
    objects: str
    facts: str
    order: str = "{s} {v} {o}."
    joint: str = " "  # between sentences


PHRASES = {
    "en": Phrases(
        "The city council|The harbour office|The regional court|The teachers' union|The museum trust|"
        "The weather service|The fire brigade|The transport minister",
        "approved|postponed|criticised|published|withdrew|funded",
        "the new bus timetable|the plan for the old mill|the budget for school meals|the report on the "
        "tunnel|"
        "the rules for scooters|the repair of the north pier|the study of river levels|the fee for parking",
        "In {p} {n} households are affected.|The work in {p} will take {n} days.|It costs {n} crowns per "
        "resident of {p}.|Some {n} people protested in {p}.|A hotline in {p} received {n} calls.|"
        "A hearing with {n} speakers is planned in {p}.",
    ),
    "de": Phrases(
        "Der Stadtrat|Das Hafenamt|Das Landgericht|Der Lehrerverband|Der Museumsverein|Der Wetterdienst|"
        "Die Feuerwehr|Die Verkehrsministerin",
        "billigte|verschob|kritisierte|veröffentlichte|verwarf|finanzierte",
        "den neuen Busfahrplan|den Plan für die alte Mühle|den Haushalt für das Schulessen|den Bericht zum "
        "Tunnel|die Regeln für Roller|die Sanierung der Nordmole|die Studie zu den Pegelständen|die Gebühr "
        "für das Parken",
        "In {p} sind {n} Haushalte betroffen.|Die Arbeiten in {p} dauern {n} Tage.|Das kostet {n} "
        "Kronen je "
        "Einwohner von {p}.|Etwa {n} Menschen protestierten in {p}.|Eine Hotline in {p} erhielt {n} "
        "Anrufe.|"
        "In {p} ist eine Anhörung mit {n} Rednern geplant.",
    ),
    "fr": Phrases(
        "Le conseil municipal|Le bureau du port|Le tribunal régional|Le syndicat des enseignants|"
        "La fondation du musée|Le service météo|La brigade des pompiers|La ministre des transports",
        "a approuvé|a reporté|a critiqué|a publié|a retiré|a financé",
        "le nouvel horaire des bus|le projet du vieux moulin|le budget des repas scolaires|le rapport "
        "sur le "
        "tunnel|les règles pour les trottinettes|la réparation de la jetée nord|l'étude du niveau des "
        "rivières|"
        "le tarif du stationnement",
        "À {p}, {n} foyers sont concernés.|Les travaux à {p} dureront {n} jours.|Cela coûte {n} "
        "couronnes par "
        "habitant de {p}.|Environ {n} personnes ont manifesté à {p}.|Un numéro d'urgence à {p} a reçu {n} "
        "appels.|Une audience avec {n} orateurs est prévue à {p}.",
    ),
    "es": Phrases(
        "El ayuntamiento|La oficina del puerto|El tribunal regional|El sindicato de maestros|La "
        "fundación del "
        "museo|El servicio meteorológico|El cuerpo de bomberos|La ministra de transportes",
        "aprobó|aplazó|criticó|publicó|retiró|financió",
        "el nuevo horario de autobuses|el plan para el viejo molino|el presupuesto de comidas escolares|"
        "el informe sobre el túnel|las normas para patinetes|la reparación del muelle norte|el estudio "
        "de los "
        "niveles del río|la tarifa de aparcamiento",
        "En {p} hay {n} hogares afectados.|Las obras en {p} durarán {n} días.|Cuesta {n} coronas por "
        "habitante "
        "de {p}.|Unas {n} personas protestaron en {p}.|Una línea de ayuda en {p} recibió {n} llamadas.|"
        "Se prevé una audiencia con {n} oradores en {p}.",
    ),
    "it": Phrases(
        "Il consiglio comunale|L'ufficio del porto|Il tribunale regionale|Il sindacato degli insegnanti|"
        "La fondazione del museo|Il servizio meteo|Il corpo dei pompieri|La ministra dei trasporti",
        "ha approvato|ha rinviato|ha criticato|ha pubblicato|ha ritirato|ha finanziato",
        "il nuovo orario degli autobus|il progetto per il vecchio mulino|il bilancio dei pasti scolastici|"
        "il rapporto sulla galleria|le regole per i monopattini|la riparazione del molo nord|lo studio dei "
        "livelli dei fiumi|la tariffa del parcheggio",
        "A {p} sono coinvolte {n} famiglie.|I lavori a {p} dureranno {n} giorni.|Costa {n} corone per "
        "abitante "
        "di {p}.|Circa {n} persone hanno protestato a {p}.|Un numero verde a {p} ha ricevuto {n} chiamate.|"
        "A {p} è prevista un'udienza con {n} oratori.",
    ),
    "pt": Phrases(
        "A câmara municipal|O gabinete do porto|O tribunal regional|O sindicato dos professores|A "
        "fundação do "
        "museu|O serviço meteorológico|O corpo de bombeiros|A ministra dos transportes",
        "aprovou|adiou|criticou|publicou|retirou|financiou",
        "o novo horário dos autocarros|o plano para o velho moinho|o orçamento das refeições escolares|"
        "o relatório sobre o túnel|as regras para trotinetes|a reparação do molhe norte|o estudo dos "
        "níveis do "
        "rio|a taxa de estacionamento",
        "Em {p} há {n} famílias afetadas.|As obras em {p} vão durar {n} dias.|Custa {n} coroas por "
        "habitante "
        "de {p}.|Cerca de {n} pessoas protestaram em {p}.|Uma linha de apoio em {p} recebeu {n} chamadas.|"
        "Está prevista em {p} uma audiência com {n} oradores.",
    ),
    "nl": Phrases(
        "De gemeenteraad|Het havenkantoor|De regionale rechtbank|De lerarenbond|De museumstichting|"
        "De weerdienst|De brandweer|De minister van vervoer",
        "steunde|vertraagde|bekritiseerde|publiceerde|verwierp|financierde",
        "de nieuwe dienstregeling van de bus|het plan voor de oude molen|de begroting voor "
        "schoolmaaltijden|"
        "het rapport over de tunnel|de regels voor steps|het herstel van de noordpier|het onderzoek naar "
        "rivierstanden|het tarief voor parkeren",
        "In {p} zijn {n} huishoudens getroffen.|Het werk in {p} duurt {n} dagen.|Het kost {n} kronen per "
        "inwoner van {p}.|Ongeveer {n} mensen protesteerden in {p}.|Een hulplijn in {p} kreeg {n} "
        "telefoontjes.|"
        "In {p} is een hoorzitting met {n} sprekers gepland.",
    ),
    "ru": Phrases(
        "Городской совет|Управление порта|Областной суд|Профсоюз учителей|Фонд музея|Служба погоды|"
        "Пожарная "
        "служба|Министерство транспорта",
        "теперь поддерживает|временно откладывает|резко критикует|сегодня публикует|неожиданно отзывает|"
        "полностью оплачивает",
        "новое расписание автобусов|проект старой мельницы|бюджет школьных обедов|доклад о тоннеле|"
        "правила для "
        "самокатов|ремонт северного пирса|исследование уровня рек|сбор за парковку",
        "В городе {p} это касается {n} семей.|Работы в городе {p} займут {n} дней.|Это стоит {n} крон "
        "на жителя "
        "города {p}.|Около {n} человек протестовали в городе {p}.|Горячая линия в городе {p} приняла "
        "{n} звонков.|"
        "В городе {p} намечены слушания, выступят {n} человек.",
    ),
    "zh": Phrases(
        "市议会|港务局|地方法院|教师工会|博物馆基金会|气象局|消防队|交通部长",
        "批准了|推迟了|批评了|公布了|撤回了|资助了",
        "新的公交时刻表|旧磨坊改造计划|学校午餐预算|隧道调查报告|滑板车管理规定|北码头维修工程|"
        "河流水位研究|停车收费标准",
        "{p}有{n}户居民受到影响。|{p}的工程将持续{n}天。|{p}每位居民需承担{n}克朗。|"
        "约{n}人在{p}举行抗议。|{p}的热线接到{n}个电话。|"
        "{p}计划举行听证会，{n}人将发言。",
        "{s}{v}{o}。",
        "",
    ),
    "tr": Phrases(
        "Belediye meclisi|Liman idaresi|Bölge mahkemesi|Öğretmenler sendikası|Müze vakfı|Meteoroloji "
        "servisi|"
        "İtfaiye teşkilatı|Ulaştırma bakanı",
        "onayladı|erteledi|eleştirdi|yayımladı|geri çekti|finanse etti",
        "yeni otobüs tarifesini|eski değirmen planını|okul yemeği bütçesini|tünel raporunu|scooter "
        "kurallarını|kuzey iskelesinin onarımını|nehir seviyesi araştırmasını|otopark ücretini",
        "{p} kentinde {n} hane etkilendi.|{p} kentindeki çalışmalar {n} gün sürecek.|Bu, {p} kentinde kişi "
        "başına {n} krona mal oluyor.|{p} kentinde yaklaşık {n} kişi protesto etti.|{p} kentindeki hat {n} "
        "çağrı aldı.|{p} kentinde {n} konuşmacıyla bir oturum planlanıyor.",
        "{s} {o} {v}.",
    ),
}
PARAPHRASES = Phrases(
    "Councillors|Port authorities|Judges in the region|Organised teachers|Curators of the museum|"
    "Meteorologists|Firefighters|The head of the transport ministry",
    "gave their consent to|delayed until further notice|found fault with|made public|took back|paid for",
    "a changed schedule of buses|what is to become of the former mill|money for lunches of pupils|an "
    "inquiry "
    "into the road under the hill|limits for electric kick bikes|mending the northern jetty|research "
    "about water "
    "in the rivers|what drivers pay for a space",
    "{n} homes of {p} have to cope with it.|Builders need {n} days there, people in {p} heard.|"
    "Everybody living "
    "in {p} pays {n} crowns.|A crowd of {n} went into the streets of {p}.|{n} callers rang a number in "
    "{p}.|"
    "{n} people want to be heard when {p} debates it.",
)
PLACES = (
    "Brackwater", "Estmark", "Larkmouth", "Skellan", "Wenlow", "Quillhaven", "Torvik", "Marlo", "Pendry",
    "Osterby", "Calder", "Vexholm",
)  # fmt: skip
